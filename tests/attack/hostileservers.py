"""A store behind rules, and delegates, that answer slowly, without end, or with lies.

``python -m tests.attack.hostileservers FOLDER [NAME …]`` prints the port of each, by default of the
store and of each of `DELEGATES`.
A name in the request decides about the answer of the store: see `STORE`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from aiohttp import web

from tests.apiservice.pki import Authority

DELEGATES: Final = ("slow", "endless", "lying", "redirecting")
METRIC: Final = "DCGM_FI_DEV_GPU_UTIL"
"""The metric of the victim."""
NAME: Final = "other.monitoring.svc"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SECONDS: Final = 300
"""The process ends by itself."""


async def _slow(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(_SECONDS)
    return web.Response()


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"status":"success","data":[')
    with suppress(ConnectionError):  # the client has read enough
        for _ in range(4000):
            await response.write(b'{"a":"%s"},' % (b"x" * 65_536))
    return response


async def _garbage(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\xff<html>[[[[" * 1000, content_type="text/html")


async def _deep(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"[" * 1_000_000, content_type="application/json")


async def _parts(request: web.Request) -> web.Response:
    """Answer with millions of elements, each of which takes many times its bytes in memory."""
    rows = b"[%s0]" % (b"0," * (6 << 20))
    data = (
        rows if request.path.endswith("/series") else b'{"resultType":"vector","result":%s}' % rows
    )
    body = b'{"status":"success","data":%s}' % data
    return web.Response(body=body, content_type="application/json")


async def _redirecting(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(f"https://{request.host}/elsewhere")


async def _many(request: web.Request) -> web.StreamResponse:
    """Answer with many series, or with many values."""
    if request.path.endswith("/series"):
        data: object = [{"__name__": f"many{number}" * 20, "pod": "p"} for number in range(5_000)]
    else:
        rows = [
            {"metric": {"namespace": "ns", "pod": f"p{n}"}, "value": [time.time(), "1e308"]}
            for n in range(30_000)
        ]
        data = {"resultType": "vector", "result": rows}
    return web.json_response({"status": "success", "data": data})


STORE: Final[dict[str, Handler]] = {
    "slow": _slow,
    "endless": _endless,
    "garbage": _garbage,
    "deep": _deep,
    "parts": _parts,
    "redirecting": _redirecting,
    "many": _many,
}


async def _store(request: web.Request) -> web.StreamResponse:
    form = await request.post()
    asked = f"{form.get('match[]', '')}{form.get('query', '')}"
    kind = next((name for name in STORE if name in asked), "")
    if request.path.endswith("/series") and kind in STORE and kind != "many":
        # Its series exist, so that its queries are sent.
        row = {"__name__": f"{kind}_metric", "namespace": "ns", "pod": "p0"}
        return web.json_response({"status": "success", "data": [row]})
    return await STORE.get(kind, _garbage)(request)


async def _lying(request: web.Request) -> web.StreamResponse:
    """List the victim's metric as its own, and answer about other pods with other numbers."""
    parts = request.path.strip("/").split("/")
    if len(parts) == 3:
        names = [f"pods/{METRIC}", "pods/lying_metric", *(f"pods/m{n}" for n in range(15_000))]
        rows = [{"name": name, "namespaced": True} for name in names]
        kind = {"kind": "APIResourceList", "apiVersion": "v1"}
        body: object = kind | {"groupVersion": "/".join(parts[1:]), "resources": rows}
        return web.json_response(body)
    pod = {"kind": "Pod", "namespace": "ns", "name": "p0", "apiVersion": "/v1"}
    row = {"describedObject": pod, "metric": {"name": METRIC}, "value": "9" * 100_000}
    lists = {"kind": "MetricValueList", "apiVersion": "/".join(parts[1:3]), "items": [row] * 20}
    return web.Response(text=json.dumps(lists), content_type="application/json")


async def _uneven(request: web.Request) -> web.StreamResponse:
    """Answer about ``slow_delegated`` after two seconds, and about other metrics at once."""
    if request.path.count("/") < 8:
        return web.Response(status=404)  # discovery: the settings name its metrics
    _, _, group, version, _, namespace, _, _, name = request.path.split("/")
    if name.startswith("slow"):
        await asyncio.sleep(2)
    pod = {"kind": "Pod", "namespace": namespace, "name": "p0", "apiVersion": "/v1"}
    row = {"describedObject": pod, "metric": {"name": name}, "value": "7"}
    row["timestamp"] = "2026-01-01T00:00:00Z"
    lists = {"kind": "MetricValueList", "apiVersion": f"{group}/{version}", "items": [row]}
    return web.Response(text=json.dumps(lists), content_type="application/json")


async def serve(folder: Path, names: Sequence[str]) -> None:
    """Serve for a limited time; print the ports once all of them listen."""
    authority = Authority("other", time.time())
    (folder / "other-ca.crt").write_bytes(authority.pem)
    certificate, key = authority.server(NAME).write(folder, "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    handlers: dict[str, Handler] = {"store": _store, "slow": _slow, "endless": _endless}
    handlers |= {"lying": _lying, "redirecting": _redirecting, "uneven": _uneven}
    ports = []
    for name in names:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", handlers[name])
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        tls = None if name == "store" else context
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        ports.append(runner.addresses[0][1])
    print(*ports, flush=True)
    await asyncio.sleep(_SECONDS)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2:] or ("store", *DELEGATES)))
