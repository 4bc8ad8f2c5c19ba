"""The demo's API server as one ASGI application: who asks, and who answers."""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.demo.certificates import FrontProxy
from adapter.demo.cluster import podproxy
from adapter.demo.cluster.documents import Documents, create_documents
from adapter.demo.cluster.resources import groups
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.cluster.workloads import deployments, scale
from adapter.demo.state import DemoState
from apiservice.errors import ApiError, MethodNotAllowed, ObjectNotFound, Unauthorized
from apiservice.view.endpoint import ViewEndpoint
from apiservice.view.resource import ViewGroup
from apiservice.wire.answers import json_messages
from apiservice.wire.routes import ResourcePath, locate

FORWARDED: Final = ("view.gpu-metrics-adapter.io", "custom.metrics.k8s.io")
"""Groups that ``serve`` answers."""
_SCALE: Final = 5
"""Parts of ``namespaces/NAMESPACE/deployments/NAME/scale``."""


class ClusterApi:
    """Answers requests with the token of the demo's kubeconfig."""

    def __init__(self, state: DemoState, upstream: Upstream, proxy: FrontProxy, token: str) -> None:
        found: Sequence[ViewGroup] = groups(state, proxy)
        self._state, self._upstream = state, upstream
        self._bearer = f"Bearer {token}".encode()
        self._views = {
            (group.group, group.version): ViewEndpoint(group, time.time) for group in found
        }
        self._documents: ASGIApp = create_documents(Documents(found, upstream))

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
        given = [text for name, text in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._bearer):
            raise Unauthorized

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith("/openapi/") or path.split("/")[2:3] in [[each] for each in FORWARDED]:
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
        elif where.group == "" and podproxy.proxied(where.parts) and scope["method"] == "GET":
            await podproxy.forward(self._state, where.parts, send)
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
