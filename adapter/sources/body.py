"""Read the body of an HTTP answer from an untrusted sender, within a limit of bytes.

Reading stops at the limit, before and after decompression, so a large page or a gzip bomb
is never held in memory as a whole.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, Iterator
from typing import Protocol

import aiohttp

from adapter.sources.errors import SourceError

_CHUNK = 1 << 18


class _Decoder(Protocol):
    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        """Yield decoded bytes in pieces, at most one byte more than ``room`` in total."""

    def finish(self) -> None:
        """Raise SourceError if the body is not complete."""


class _Identity:
    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        return


class _Gzip:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(31)

    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        while room >= 0:
            most = min(_CHUNK, room + 1)
            try:
                out = self._inflate.decompress(data, most)
            except zlib.error as error:
                raise SourceError("encoding", f"the gzip body is corrupt: {error}") from error
            if self._inflate.unused_data:
                raise SourceError("encoding", "data follows the end of the gzip body")
            yield out
            if len(out) < most:
                return
            data = self._inflate.unconsumed_tail
            room -= len(out)

    def finish(self) -> None:
        if not self._inflate.eof:
            raise SourceError("truncated", "the gzip body is incomplete")


class Loan(Protocol):
    """Accounts for bytes that are read."""

    async def take(self, size: int) -> None:
        """Account for ``size`` more bytes; wait while there is no room for them."""


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the decompressed body, for a session made with ``auto_decompress=False``.

    Raises:
        SourceError: see :func:`decoded`.
        aiohttp.ClientError: the connection failed.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    chunks = response.content.iter_chunked(_CHUNK)
    try:
        return await decoded(chunks, encoding, limit, response.content_length or 0)
    except aiohttp.ClientPayloadError as error:
        raise SourceError("truncated", "the answer is incomplete") from error


async def decoded(
    chunks: AsyncIterable[bytes],
    encoding: str,
    limit: int,
    length: int = 0,
    loan: Loan | None = None,
) -> bytes:
    """Return the decompressed body that arrives in ``chunks``.

    Args:
        chunks: the body as sent.
        encoding: the header ``Content-Encoding``.
        limit: the maximum number of bytes, before and after decompression.
        length: the header ``Content-Length``; 0 if it is not known.
        loan: accounts for decompressed bytes.

    Raises:
        SourceError: ``too_large`` above ``limit`` bytes, ``encoding`` for a body that is
            neither plain nor gzip, ``truncated`` for an incomplete one.
    """
    if length > limit:
        raise SourceError("too_large", f"the answer is above {limit} bytes")
    decoder = _decoder(encoding)
    parts: list[bytes] = []
    room = limit
    sent = 0
    async for chunk in chunks:
        sent += len(chunk)
        for part in decoder.feed(chunk, room):
            room -= len(part)
            if room < 0 or sent > limit:
                raise SourceError("too_large", f"the answer is above {limit} bytes")
            if loan is not None:
                await loan.take(len(part))
            parts.append(part)
            if len(part) >= _CHUNK:
                await asyncio.sleep(0)  # let other tasks run
    decoder.finish()
    return b"".join(parts)


def _decoder(encoding: str) -> _Decoder:
    if encoding in ("", "identity"):
        return _Identity()
    if encoding in ("gzip", "x-gzip"):
        return _Gzip()
    raise SourceError("encoding", f"Content-Encoding {encoding[:40]!r} was not requested")
