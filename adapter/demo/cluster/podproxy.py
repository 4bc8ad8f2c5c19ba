"""The ``proxy`` subresource of the exporters' pods, as kube-apiserver forwards their pages."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Send

from adapter.demo.manifests import EXPORTER, EXPORTER_NAMESPACE
from adapter.demo.server import HOST
from adapter.demo.state import DemoState
from apiservice.errors import RouteNotFound, Unavailable
from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import client_context

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
