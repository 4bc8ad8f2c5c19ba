"""The exporters are real HTTP servers, and die like real ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from adapter.demo.exporters import Exporters


@pytest.fixture
async def exporters() -> AsyncIterator[Exporters]:
    exporters = Exporters(lambda node: f"up{{node='{node}'}} 1\n".encode())
    yield exporters
    await exporters.close()


async def get(exporters: Exporters, node: str, path: str = "/metrics") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{exporters.ports[node]}{path}")


async def test_each_node_has_a_page_of_its_own(exporters: Exporters) -> None:
    assert await exporters.match({"a", "b"})
    assert (await get(exporters, "a")).text == "up{node='a'} 1\n"
    answer = await get(exporters, "b")
    assert answer.text == "up{node='b'} 1\n"
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_a_dead_exporter_resets_connections_and_keeps_its_port(exporters: Exporters) -> None:
    await exporters.match({"a"})
    port = exporters.ports["a"]
    exporters.dead.add("a")
    with pytest.raises(httpx.TransportError):
        await get(exporters, "a")
    exporters.dead.clear()
    assert (await get(exporters, "a")).status_code == 200
    assert exporters.ports["a"] == port


async def test_a_node_that_went_refuses_connections(exporters: Exporters) -> None:
    await exporters.match({"a", "b"})
    port = exporters.ports["a"]
    assert await exporters.match({"b"})
    assert not await exporters.match({"b"}), "nothing to change any more"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize("path", ["/", "/metrics/x", "/healthz"])
async def test_other_paths_are_not_found(exporters: Exporters, path: str) -> None:
    await exporters.match({"a"})
    assert (await get(exporters, "a", path)).status_code == 404


@pytest.mark.parametrize("sent", [b"", b"nonsense", b"GET /metrics", b"x" * 40_000])
async def test_a_broken_request_costs_its_connection_only(
    exporters: Exporters, sent: bytes
) -> None:
    await exporters.match({"a"})
    reader, writer = await asyncio.open_connection("127.0.0.1", exporters.ports["a"])
    writer.write(sent)
    writer.write_eof()
    try:
        assert b" 200 " not in await reader.read()
    except ConnectionResetError:
        pass
    finally:
        writer.close()
    assert (await get(exporters, "a")).status_code == 200
