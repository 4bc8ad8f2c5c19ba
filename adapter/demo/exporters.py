"""The nodes' exporters: real HTTP servers with one port each, like a DaemonSet's pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from adapter.demo.page import CONTENT_TYPE

_LARGEST_HEAD = 16 * 1024


class Exporters:
    """One listener for each booted node. A dead exporter resets every connection."""

    def __init__(
        self, page: Callable[[str], bytes], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        """``page`` renders the page of a node by name; port 0 takes a free port for each."""
        self._page = page
        self._host, self._port = host, port
        self._servers: dict[str, asyncio.Server] = {}
        self._ports: dict[str, int] = {}
        self._dead: set[str] = set()

    @property
    def ports(self) -> Mapping[str, int]:
        """Node -> port, for the exporters that listen."""
        return self._ports

    @property
    def dead(self) -> frozenset[str]:
        """Nodes whose exporter does not answer."""
        return frozenset(self._dead)

    async def match(self, nodes: set[str]) -> bool:
        """Listen for exactly these nodes. Return whether anything changed."""
        gone = self._servers.keys() - nodes
        for node in gone:
            self._servers.pop(node).close()
            del self._ports[node]
        new = nodes - self._servers.keys()
        for node in sorted(new):
            await self._listen(node)
        return bool(gone or new)

    def kill(self, node: str) -> None:
        """Reset connections to the node's exporter from now on."""
        self._dead.add(node)

    def revive(self, node: str) -> None:
        """Let the node's exporter answer again."""
        self._dead.discard(node)

    async def close(self) -> None:
        """Stop listening."""
        await self.match(set())

    async def _listen(self, node: str) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._answer(node, reader, writer)

        server = await asyncio.start_server(answer, self._host, self._port, limit=_LARGEST_HEAD)
        self._servers[node] = server
        self._ports[node] = server.sockets[0].getsockname()[1]

    async def _answer(
        self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            if node in self._dead:
                writer.transport.abort()
                return
            writer.write(_reply(request, self._page(node)))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()


def _reply(request: bytes, page: bytes) -> bytes:
    if request.split(b" ", 2)[:2] != [b"GET", b"/metrics"]:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    head = (
        "HTTP/1.1 200 OK\r\n"
        f"Content-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(page)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + page
