"""Targets by name: what fails is named, an exporter that moved is found, no name delays another."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.scrape.client import PageClient
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from tests.adapter.serving import Exporter


class Names:
    """The system's resolver, as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: dict[str, str] = {}
        self.release = threading.Event()
        monkeypatch.setattr("apiservice.runtime.names.socket.getaddrinfo", self.getaddrinfo)

    def getaddrinfo(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host.startswith("silent"):
            self.release.wait(60)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.addresses[host], port))]


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.close()


async def test_an_exporter_whose_name_comes_back_is_read_again(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, client = Names(monkeypatch), PageClient(idle=60)
    exporter.page = b"up 1\n"
    port = urlsplit(exporter.url).port
    target = ScrapeTarget(f"http://exporter.example:{port}/metrics")
    async with client.connected():
        with pytest.raises(SourceError) as failed:
            await client.fetch(target, 1 << 16)
        assert str(failed.value) == (
            f"cannot connect to exporter.example:{port}: Name or service not known"
        )
        names.addresses["exporter.example"] = "127.0.0.9"  # nothing listens there
        with pytest.raises(SourceError, match=r"cannot connect to exporter\.example"):
            await client.fetch(target, 1 << 16)
        names.addresses["exporter.example"] = "127.0.0.1"
        assert await client.fetch(target, 1 << 16) == b"up 1\n"


async def test_names_that_hang_delay_no_exporter(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, client = Names(monkeypatch), PageClient(idle=60)
    exporter.page = b"up 1\n"
    names.addresses["exporter.example"] = "127.0.0.1"
    silent = [ScrapeTarget(f"http://silent{n}.example:80/metrics") for n in range(12)]
    answering = ScrapeTarget(f"http://exporter.example:{urlsplit(exporter.url).port}/metrics")
    async with client.connected():
        hanging = [asyncio.ensure_future(client.fetch(target, 1 << 16)) for target in silent]
        try:
            async with asyncio.timeout(30):
                assert await client.fetch(answering, 1 << 16) == b"up 1\n"
            assert not any(task.done() for task in hanging)
        finally:
            names.release.set()
            ended = await asyncio.gather(*hanging, return_exceptions=True)
        assert {type(error) for error in ended} == {SourceError}
