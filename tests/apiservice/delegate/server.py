"""A delegate on loopback: a TLS server that answers as a test says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from apiservice.delegate.credential import Credential
from apiservice.delegate.delegate import Delegate
from apiservice.delegate.options import DelegateOptions
from apiservice.delegate.transport import HttpTransport
from apiservice.runtime.servertrust import client_context
from apiservice.wire.metricvalues import CUSTOM_GROUP, EXTERNAL_GROUP
from tests.apiservice.pki import Authority, server_context

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
NAME = "other.monitoring.svc"


class FixedToken:
    """A credential with the tokens of a list; a refusal moves to the next."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def token(self) -> str:
        return self.tokens[0]

    def note_refusal(self, token: str) -> bool:
        if len(self.tokens) == 1:
            return False
        self.tokens.pop(0)
        return True


def rows(group_version: str, *names: str, namespaced: bool = True) -> dict[str, Any]:
    """An APIResourceList."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": [{"name": name, "namespaced": namespaced} for name in names],
    }


def custom_list(version: str, metric: str, **values: str) -> dict[str, Any]:
    """A MetricValueList about pods."""
    items = []
    for pod, value in values.items():
        described = {"kind": "Pod", "namespace": "ns", "name": pod, "apiVersion": "/v1"}
        item: dict[str, Any] = {"describedObject": described, "timestamp": "2026-01-02T03:04:05Z"}
        if version == "v1beta2":
            item |= {"metric": {"name": metric, "selector": None}, "windowSeconds": 60}
        else:
            item |= {"metricName": metric, "window": 60, "selector": None}
        items.append(item | {"value": value})
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{CUSTOM_GROUP}/{version}",
        "metadata": {},
        "items": items,
    }


def failure(code: int, message: str) -> dict[str, Any]:
    """A Status."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return status | {"message": message, "code": code}


@dataclass
class OtherServer:
    """Serves pages by path, and records what it was asked."""

    pages: dict[str, Any] = field(default_factory=dict)
    """Path -> object for JSON, or a handler."""
    asked: list[web.Request] = field(default_factory=list)
    tokens: set[str] = field(default_factory=lambda: {"good"})
    port: int = 0
    ca: bytes = b""

    async def start(self, folder: Path, stack: AsyncExitStack, *, name: str = NAME) -> None:
        """Serve until the stack ends."""
        authority = Authority("other", time.time(), old=True)
        self.ca = authority.pem
        context = server_context(authority.server(name), folder)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = runner.addresses[0][1]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return web.json_response(failure(401, "Unauthorized"), status=401)
        page = self.pages.get(request.path)
        if page is None:
            return web.json_response(failure(404, "not here"), status=404)
        if callable(page):
            response: web.StreamResponse = await page(request)
            return response
        return web.json_response(page)

    def metrics(self) -> list[web.Request]:
        """Requests that were not for discovery."""
        return [request for request in self.asked if request.path.count("/") > 3]

    def lists(self, *names: str, versions: tuple[str, ...] = ("v1beta2", "v1beta1")) -> None:
        """List these custom metrics."""
        for version in versions:
            group_version = f"{CUSTOM_GROUP}/{version}"
            self.pages[f"/apis/{group_version}"] = rows(group_version, *names)

    def lists_external(self, *names: str) -> None:
        """List these external metrics."""
        group_version = f"{EXTERNAL_GROUP}/v1beta1"
        self.pages[f"/apis/{group_version}"] = rows(group_version, *names)

    def delegate(
        self, stack: AsyncExitStack, credential: Credential | None = None, **options: Any
    ) -> Delegate:
        """The delegate as ours has it."""
        chosen: Mapping[str, Any] = {
            "name": "other",
            "url": f"https://127.0.0.1:{self.port}",
            "server_name": NAME,
            "groups": frozenset({CUSTOM_GROUP, EXTERNAL_GROUP}),
            "timeout": 5.0,
        } | options
        made = DelegateOptions(**chosen)
        context = client_context(ca_data=self.ca.decode())
        transport = HttpTransport(made, lambda: context, credential or FixedToken("good"), "test")
        stack.push_async_callback(transport.close)
        return Delegate(made, transport)


async def forever(_: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def drip(request: web.Request) -> web.StreamResponse:
    """Answer a byte at a time, without an end."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


def answers(
    status: int = 200, body: str = "", content_type: str = "application/json", **headers: str
) -> Handler:
    """A handler with one answer."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type=content_type, headers=headers)

    return answer


def states(status: int, message: str) -> Handler:
    """A handler that answers an error."""
    return answers(status, json.dumps(failure(status, message)))
