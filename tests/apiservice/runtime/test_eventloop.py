"""What the event loop of a process reports about errors that no caller handles."""

from __future__ import annotations

import asyncio
import logging

import pytest

from apiservice.runtime import eventloop


class _Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def test_a_connection_that_ended_early_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    reported: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport, client = await loop.create_connection(_Client, "127.0.0.1", port)
        transport.abort()
        async with asyncio.timeout(60):
            await client.ended.wait()
        try:
            transport.write(b"late")
        except RuntimeError as error:
            reported.append(error)
            loop.call_exception_handler({"message": "TLS", "exception": error})
        server.close()

    with caplog.at_level(logging.INFO):
        eventloop.run(main())
    (error,) = reported
    assert "the handler is closed" in str(error)
    assert caplog.records == []


def test_every_other_error_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        context = {"message": "a callback failed", "exception": RuntimeError("a bug")}
        asyncio.get_running_loop().call_exception_handler(context)

    with caplog.at_level(logging.INFO):
        eventloop.run(main())
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("a callback failed")
