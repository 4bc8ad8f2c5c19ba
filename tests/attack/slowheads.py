"""Clients who send the head of a request one byte at a time, and come back when they are cut.

``python -m tests.attack.slowheads PORT COUNT SECONDS`` runs them in a process of their own, so that
their handshakes take no time of the observer.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import sys
from contextlib import suppress

from tests.attack.strangers import SOURCES

_HEAD = b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: " + b"x" * 4096


async def _slow(port: int, source: str, context: ssl.SSLContext) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, local_addr=(source, 0)
            )
            try:
                for byte in _HEAD:
                    writer.write(bytes((byte,)))
                    await writer.drain()
                    await asyncio.sleep(random.uniform(0.5, 1.5))
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.05)


async def _attack(port: int, count: int, seconds: float) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(_slow(port, SOURCES[number % len(SOURCES)], context))


if __name__ == "__main__":
    asyncio.run(_attack(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
