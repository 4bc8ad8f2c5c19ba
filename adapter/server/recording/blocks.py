"""Blocks of a recording: gzip members that state their size, so that damage costs one block.

A block is a gzip member (RFC 1952) with one extra field, ``GM``: the size of the whole member in
bytes, four of them, little-endian. Any gzip program reads a file of blocks. A recorder that is
killed leaves an incomplete block; the next recorder appends after it, and a reader goes on with the
next block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

MOST: Final = 16 << 20
"""Bytes of one block, compressed."""
MOST_TEXT: Final = 16 << 20
"""Bytes of the text of one block that is read."""
WRITTEN: Final = 15 << 20
"""Bytes of the text of one block that is written. Deflate makes no text longer by more than a
thousandth, so a block that hardly compresses can be read too."""
_LEVEL: Final = 6
_MAGIC: Final = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x08\x00GM\x04\x00"
"""Deflate, an extra field, no time, an unknown system; eight bytes of extra field, four of them
the size."""
_HEAD: Final = len(_MAGIC) + 4
_TAIL: Final = 8
_RAW: Final = -15
"""Window bits of zlib for deflate without a header."""
_CHUNK: Final = 1 << 20


class DamagedError(Exception):
    """A block that cannot be read."""


def pack(text: bytes) -> bytes:
    """Return the block of a text of at most :data:`WRITTEN` bytes."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    body = deflate.compress(text) + deflate.flush()
    size = _HEAD + len(body) + _TAIL
    head = _MAGIC + struct.pack("<I", size)
    return head + body + struct.pack("<II", zlib.crc32(text), len(text))


def unpack(block: bytes) -> bytes:
    """Return the text of a block; raises DamagedError."""
    inflate = zlib.decompressobj(_RAW)
    try:
        text = inflate.decompress(block[_HEAD:-_TAIL], MOST_TEXT)
    except zlib.error as error:
        raise DamagedError(str(error)) from None
    check, length = struct.unpack("<II", block[-_TAIL:])
    if not inflate.eof or length != len(text) or check != zlib.crc32(text):
        raise DamagedError("the checksum differs")
    return text


def texts(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the text of each block, and None for a stretch that cannot be read."""
    data = b""
    while data := _fill_data(file, data, _HEAD):
        size = _size(data)
        if size is not None:
            data = _fill_data(file, data, size)
            if len(data) >= size:
                try:
                    text = unpack(data[:size])
                except DamagedError:
                    pass
                else:
                    yield text
                    data = data[size:]
                    continue
        yield None
        data = _next_block(file, data[1:])


def _size(data: bytes) -> int | None:
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        return None
    (size,) = struct.unpack("<I", data[len(_MAGIC) : _HEAD])
    return size if _HEAD + _TAIL < size <= MOST else None


def _fill_data(file: BinaryIO, data: bytes, size: int) -> bytes:
    """Return the data with at least ``size`` bytes, unless the file ends."""
    while len(data) < size and (more := file.read(max(size - len(data), _CHUNK))):
        data += more
    return data


def _next_block(file: BinaryIO, data: bytes) -> bytes:
    """Return the data from the next beginning of a block; empty if there is none."""
    while True:
        start = data.find(_MAGIC)
        if start >= 0:
            return data[start:]
        more = file.read(_CHUNK)
        if not more:
            return b""
        data = data[-len(_MAGIC) + 1 :] + more
