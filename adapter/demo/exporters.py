"""The exporters of the nodes, and the pages of servers: real HTTP servers with one port each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from adapter.demo.page import CONTENT_TYPE


class Exporters:
    """One listener for each name, such as a booted node. A dead one resets every connection."""

    def __init__(
        self, page: Callable[[str], bytes], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        """``page`` renders the page of a name; port 0 takes a free port for each.

        A page that raises KeyError does not exist any more.
        """
        self._page = page
        self._host, self._port = host, port
        self._runners: dict[str, web.ServerRunner] = {}
        self.dead: set[str] = set()
        """Names that reset every connection."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Name -> port, for those that listen."""
        return {node: runner.addresses[0][1] for node, runner in self._runners.items()}

    async def match(self, names: set[str]) -> bool:
        """Listen for exactly these names. Return whether anything changed."""
        gone = self._runners.keys() - names
        for name in gone:
            await self._runners.pop(name).cleanup()
        new = names - self._runners.keys()
        for name in sorted(new):
            await self._listen(name)
        return bool(gone or new)

    async def close(self) -> None:
        """Stop listening."""
        await self.match(set())

    async def _listen(self, name: str) -> None:
        async def answer(request: web.BaseRequest) -> web.Response:
            if name in self.dead and request.transport:
                request.transport.abort()
            if (request.method, request.path) != ("GET", "/metrics"):
                return web.Response(status=404)
            try:
                body = self._page(name)
            except KeyError:
                return web.Response(status=404)
            return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, self._host, self._port).start()
        self._runners[name] = runner
