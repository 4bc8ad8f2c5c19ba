"""Read the body of an HTTP answer from an untrusted sender, within a limit of bytes.

Reading stops at the limit, before and after decompression, so a large page or a gzip bomb
is never held in memory as a whole.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from adapter.pipeline.sources.errors import SourceError

if TYPE_CHECKING:  # a process that scrapes needs this module, and not httpx
    import httpx

_CHUNK = 1 << 18


Take = Callable[[int], Awaitable[None]]
"""Accounts for so many more bytes that are read; waits while there is no room for them."""


def body_parts(
    response: httpx.Response, limit: int, take: Take | None = None
) -> AsyncIterator[bytes]:
    """Yield the decompressed body of an answer in parts.

    Args:
        limit: see :func:`decode_body`.
        take: see :func:`decode_body`.

    Raises:
        SourceError: see :func:`decode_body`.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    length = response.headers.get("Content-Length", "")
    stated = int(length) if length.isdecimal() and len(length) < 20 else 0
    return decode_parts(response.aiter_raw(), encoding, limit, stated, take)


async def decode_body(
    chunks: AsyncIterable[bytes],
    encoding: str,
    limit: int,
    length: int = 0,
    take: Take | None = None,
) -> bytes:
    """Return the decompressed body that arrives in ``chunks``.

    Args:
        limit: the maximum number of bytes, before and after decompression.
        length: the header ``Content-Length``; 0 if it is not known.
        take: accounts for decompressed bytes.

    Raises:
        SourceError: ``too_large`` above ``limit`` bytes, ``encoding`` for a body that is
            neither plain nor gzip, ``truncated`` for an incomplete one.
    """
    parts = decode_parts(chunks, encoding, limit, length, take)
    return b"".join([part async for part in parts])


async def decode_parts(
    chunks: AsyncIterable[bytes], encoding: str, limit: int, length: int, take: Take | None
) -> AsyncIterator[bytes]:
    """Yield the decompressed body in parts; see :func:`decode_body`."""
    if length > limit:
        raise SourceError("too_large", f"the answer is above {limit} bytes")
    inflate = _decompressor(encoding)
    room = limit
    sent = 0
    async for chunk in chunks:
        sent += len(chunk)
        for part in (chunk,) if inflate is None else _inflate_chunk(inflate, chunk, room):
            room -= len(part)
            if room < 0 or sent > limit:
                raise SourceError("too_large", f"the answer is above {limit} bytes")
            if take is not None:
                await take(len(part))
            yield part
            if len(part) >= _CHUNK:
                await asyncio.sleep(0)  # let other tasks run
    if inflate is not None and not inflate.eof:
        raise SourceError("truncated", "the gzip body is incomplete")


def _decompressor(encoding: str) -> zlib._Decompress | None:
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(31)
    raise SourceError("encoding", f"Content-Encoding {encoding[:40]!r} was not requested")


def _inflate_chunk(inflate: zlib._Decompress, data: bytes, room: int) -> Iterator[bytes]:
    """Yield decompressed bytes in pieces, at most one byte more than ``room`` in total."""
    while room >= 0:
        most = min(_CHUNK, room + 1)
        try:
            out = inflate.decompress(data, most)
        except zlib.error as error:
            raise SourceError("encoding", f"the gzip body is corrupt: {error}") from error
        if inflate.unused_data:
            raise SourceError("encoding", "data follows the end of the gzip body")
        yield out
        if len(out) < most:
            return
        data = inflate.unconsumed_tail
        room -= len(out)
