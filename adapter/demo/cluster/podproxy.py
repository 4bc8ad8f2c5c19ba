"""The ``proxy`` subresource of the exporters' pods, as kube-apiserver forwards their pages."""

from __future__ import annotations

from typing import Final

import aiohttp
from starlette.types import Send

from adapter.demo.manifests import EXPORTER, EXPORTER_NAMESPACE
from adapter.demo.server import HOST
from adapter.demo.state import DemoState
from apiservice.errors import RouteNotFound, Unavailable

MOST_BYTES: Final = 4 << 20
"""Bytes of a page."""
_SECONDS: Final = 5.0
_PARTS: Final = 6
"""Parts of ``namespaces/NAMESPACE/pods/NAME:PORT/proxy/metrics``."""


def proxied(parts: tuple[str, ...]) -> bool:
    """Return whether a path is below the proxy of a pod."""
    return len(parts) >= _PARTS - 1 and parts[2::2][:2] == ("pods", "proxy")


async def forward(state: DemoState, parts: tuple[str, ...], send: Send) -> None:
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
    limits = aiohttp.ClientTimeout(_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as http,
            http.get(f"http://{HOST}:{listens}/metrics", allow_redirects=False) as answer,
        ):
            kind, status = answer.headers.get("Content-Type", "text/plain"), answer.status
            body = b""
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise aiohttp.ClientPayloadError(f"more than {MOST_BYTES} bytes")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        text = f"error trying to reach service: {error or type(error).__name__}"
        raise Unavailable(text) from None
    headers = [(b"content-type", kind.encode("latin-1"))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
