"""The demo's API server as one ASGI application: who asks, and who answers."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.demo.certificates import FrontProxy
from adapter.demo.cluster.documents import Documents, create_documents
from adapter.demo.cluster.resources import groups
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.cluster.workloads import deployments, scale
from adapter.demo.manifests import EXPORTER, EXPORTER_NAMESPACE
from adapter.demo.server import HOST
from adapter.demo.state import DemoState
from apiservice.errors import (
    ApiError,
    MethodNotAllowed,
    ObjectNotFound,
    RouteNotFound,
    Unauthorized,
    Unavailable,
)
from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import client_context
from apiservice.view.endpoint import ViewEndpoint
from apiservice.view.resource import ViewGroup
from apiservice.wire.answers import json_messages
from apiservice.wire.routes import ResourcePath, locate

FORWARDED: Final = ("view.gpu-metrics-adapter.io", "custom.metrics.k8s.io")
"""Groups that ``serve`` answers."""
_SCALE: Final = 5
"""Parts of ``namespaces/NAMESPACE/deployments/NAME/scale``."""
MOST_BYTES: Final = 4 << 20
"""Bytes of a page."""
_SECONDS: Final = 5.0
_PARTS: Final = 6
"""Parts of ``namespaces/NAMESPACE/pods/NAME:PORT/proxy/metrics``."""


def _is_proxied(parts: tuple[str, ...]) -> bool:
    """Return whether a path is below the proxy of a pod."""
    return len(parts) >= _PARTS - 1 and parts[2::2][:2] == ("pods", "proxy")


async def _forward_page(state: DemoState, parts: tuple[str, ...], send: Send) -> None:
    """Answer with the page of an exporter.

    Raises:
        RouteNotFound: the path is not one of an exporter's page.
        Unavailable: the exporter does not answer.
    """
    name, _, port = parts[3].removeprefix("http:").partition(":")
    node = name.removeprefix(f"{EXPORTER}-")
    listens = state.exporters.ports.get(node)
    page = parts[1] == EXPORTER_NAMESPACE and parts[5:] == ("metrics",)
    if not page or listens is None or port not in ("", str(listens), "metrics"):
        raise RouteNotFound
    client = HttpClient(client_context, {"Accept-Encoding": "identity"})
    try:
        async with (
            asyncio.timeout(_SECONDS),
            client.send("GET", f"http://{HOST}:{listens}/metrics") as answer,
        ):
            kind, status = answer.headers.get("Content-Type", "text/plain"), answer.status_code
            body = b""
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise RequestError("protocol", f"more than {MOST_BYTES} bytes")
    except (RequestError, OSError) as error:  # also a time-out
        text = f"error trying to reach service: {error or type(error).__name__}"
        raise Unavailable(text) from None
    finally:
        await client.close()
    headers = [(b"content-type", kind.encode("latin-1"))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class ClusterApi:
    """Answers requests with the token of the demo's kubeconfig."""

    def __init__(self, state: DemoState, upstream: Upstream, proxy: FrontProxy, token: str) -> None:
        view_groups: Sequence[ViewGroup] = groups(state, proxy)
        self._state, self._upstream = state, upstream
        self._bearer = f"Bearer {token}".encode()
        self._views = {
            (group.group, group.version): ViewEndpoint(group, time.time) for group in view_groups
        }
        self._documents: ASGIApp = create_documents(Documents(view_groups, upstream))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI connection scope."""
        if scope["type"] != "http":
            return
        try:
            self._authenticate(scope)
            await self._answer(scope, receive, send)
        except ApiError as error:
            for message in json_messages(error.code, error.body()):
                await send(message)

    def _authenticate(self, scope: Scope) -> None:
        credentials = [text for name, text in scope["headers"] if name == b"authorization"]
        if len(credentials) != 1 or not hmac.compare_digest(credentials[0], self._bearer):
            raise Unauthorized

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith("/openapi/") or path.split("/")[2:3] in [[name] for name in FORWARDED]:
            if scope["method"] != "GET":
                raise MethodNotAllowed
            await self._upstream.forward(scope, send)
            return
        where = _locate(path)
        view = None if where is None else self._views.get((where.group, where.version))
        if where is None or view is None:
            await self._documents(scope, receive, send)
        elif len(where.parts) == _SCALE and where.parts[2::2] == ("deployments", "scale"):
            if scope["method"] != "GET":
                raise MethodNotAllowed
            for message in json_messages(200, self._scale(*where.parts[1:4:2])):
                await send(message)
        elif where.group == "" and _is_proxied(where.parts) and scope["method"] == "GET":
            await _forward_page(self._state, where.parts, send)
        else:
            await view.answer(scope, where, receive, send, _may_list)

    def _scale(self, namespace: str, name: str) -> bytes:
        for row in deployments(self._state):
            meta = row["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, name):
                return msgspec.json.encode(scale(row))
        raise ObjectNotFound("apps", "deployments", name)


def _locate(path: str) -> ResourcePath | None:
    """Return what a path names, also in the group without a name."""
    parts = tuple(path.strip("/").split("/"))
    if parts[0] == "api" and len(parts) > 2:
        return ResourcePath("", parts[1], parts[2:])
    return locate(path)


async def _may_list() -> bool:
    return True
