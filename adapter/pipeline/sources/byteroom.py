"""Bound the bytes of answers that are read at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class ByteRoom:
    """Bytes of answers in progress.

    Args:
        size: bytes of all together. One more answer at a time may exceed them; others wait for it,
            so no answer waits forever for bytes that other waiting answers hold.
    """

    def __init__(self, size: int) -> None:
        self.free = size
        """Bytes that the answers in progress have left."""
        self.beyond = asyncio.Lock()
        """Held by the one answer that may exceed them."""

    @contextmanager
    def hold(self) -> Iterator[HeldBytes]:
        """Hold bytes for the duration of the block."""
        held_bytes = HeldBytes(self)
        try:
            yield held_bytes
        finally:
            held_bytes.release()


class HeldBytes:
    """The bytes of a room that one answer holds."""

    def __init__(self, room: ByteRoom) -> None:
        self._room = room
        self._size = 0
        self._beyond = False

    async def take(self, size: int) -> None:
        """Account for ``size`` more bytes; wait while there is no room for them."""
        room = self._room
        if not self._beyond and size > room.free:
            await room.beyond.acquire()
            self._beyond = True
        room.free -= size
        self._size += size

    def release(self) -> None:
        """Release all bytes; called once."""
        self._room.free += self._size
        if self._beyond:
            self._room.beyond.release()
