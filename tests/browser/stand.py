"""The real server of the page on a free port, with parts that a test publishes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.tools.ui.app import application
from adapter.tools.ui.explanations import Explained, Explanations
from adapter.tools.ui.files import page_files
from adapter.tools.ui.parts import PageParts
from adapter.tools.ui.security import Access, Guard
from adapter.tools.ui.server import listen, serve_app
from adapter.tools.ui.stream import Streams
from tests.browser import states

NUMBERED: Final = "gpus"


class Explainer:
    """Explains from :mod:`tests.browser.states`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def of(self, kind: str, name: str, namespace: str = "") -> Explained:
        """Explain a thing; one with the name ``gone`` is not found."""
        self.asked.append((kind, namespace, name))
        if name == "gone":
            return Explained(404, {"error": f"{kind} {name} does not exist"})
        return Explained(200, states.explanation(kind, namespace, name))


class Stand:
    """The server in a thread of its own."""

    def __init__(self, state: states.State, *, port: int = 0, token: str = "") -> None:
        self.state = state
        self.explainer = Explainer()
        self._socket = listen(port)
        self.port: int = self._socket.getsockname()[1]
        self.access = Access(self.port)
        if token:
            self.access.token = token  # type: ignore[misc] # as if the process went on
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Stand:
        """Start, and publish the state."""
        self._thread.start()
        assert self._ready.wait(30), "the server did not start"
        self.publish(**self.state)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and free the port."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(30)
        self._socket.close()

    def publish(self, **parts: Any) -> None:
        """Send parts to the page."""
        self.state |= parts
        asyncio.run_coroutine_threadsafe(self._publish(parts), self._loop).result(30)

    def publish_load_of_another_revision(self, load: Any) -> None:
        """Send a load whose GPUs the page does not have yet."""

        async def send() -> None:
            content = {key: value for key, value in load.items() if key != "of"}
            self._parts.publish("load", _json(content), of=self._revision + 100)

        asyncio.run_coroutine_threadsafe(send(), self._loop).result(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._parts = PageParts()
        inner = application(
            Streams(self._parts), cast("Explanations", self.explainer), page_files()
        )
        self._stopped = asyncio.Event()
        async with serve_app(Guard(self._with_answers(inner), self.access), self._socket):
            self._ready.set()
            await self._stopped.wait()

    def _stop(self) -> None:
        self._stopped.set()
        self._parts.close()

    def _with_answers(self, inner: ASGIApp) -> ASGIApp:
        answers: dict[str, Callable[[Request], Response]] = {
            "/api/history": self._history,
            "/api/range": self._range,
            "/api/idle.csv": lambda _: PlainTextResponse("gpu,uuid\r\n"),
        }

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            answer = answers.get(scope["path"])
            await (inner if answer is None else answer(Request(scope)))(scope, receive, send)

        return app

    def _range(self, request: Request) -> Response:
        name, points = request.query_params["hpa"], int(request.query_params["minutes"])
        return JSONResponse({name: states.history(self.state, time.time(), points)[name]})

    def _history(self, request: Request) -> Response:
        known = states.history(self.state, time.time(), 60 if "past" in self.state else 120)
        asked = request.query_params.getlist("hpa")
        return JSONResponse({name: known[name] for name in asked if name in known})

    async def _publish(self, parts: dict[str, Any]) -> None:
        revision = 0
        for name in sorted(parts, key=lambda name: name != NUMBERED):
            content = parts[name]
            if name == NUMBERED:
                content = {key: content[key] for key in ("columns", "rows")}
                revision = self._parts.publish(name, _json(content), numbered=True)
                self._revision = revision
            elif name == "load":
                content = {key: value for key, value in content.items() if key != "of"}
                self._parts.publish(name, _json(content), of=self._revision)
            else:
                self._parts.publish(name, _json(content))


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
