"""The nodes' exporters: real HTTP servers with one port each, like a DaemonSet's pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from adapter.demo.page import CONTENT_TYPE


class Exporters:
    """One listener for each booted node. A dead exporter resets every connection."""

    def __init__(
        self, page: Callable[[str], bytes], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        """``page`` renders the page of a node by name; port 0 takes a free port for each."""
        self._page = page
        self._host, self._port = host, port
        self._runners: dict[str, web.ServerRunner] = {}
        self.dead: set[str] = set()
        """Nodes whose exporter resets every connection."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Node -> port, for the exporters that listen."""
        return {node: runner.addresses[0][1] for node, runner in self._runners.items()}

    async def match(self, nodes: set[str]) -> bool:
        """Listen for exactly these nodes. Return whether anything changed."""
        gone = self._runners.keys() - nodes
        for node in gone:
            await self._runners.pop(node).cleanup()
        new = nodes - self._runners.keys()
        for node in sorted(new):
            await self._listen(node)
        return bool(gone or new)

    async def close(self) -> None:
        """Stop listening."""
        await self.match(set())

    async def _listen(self, node: str) -> None:
        async def answer(request: web.BaseRequest) -> web.Response:
            if node in self.dead and request.transport:
                request.transport.abort()
            if (request.method, request.path) != ("GET", "/metrics"):
                return web.Response(status=404)
            return web.Response(body=self._page(node), headers={"Content-Type": CONTENT_TYPE})

        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, self._host, self._port).start()
        self._runners[node] = runner
