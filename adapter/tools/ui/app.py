"""The page's addresses."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import msgspec
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from adapter.config.process.output import say
from adapter.tools.ui.data import MOST_NAMES, PageData
from adapter.tools.ui.explanations import Explained, Explanations
from adapter.tools.ui.files import INDEX, PageFile
from adapter.tools.ui.stream import MOST_STREAMS, EventStream, Streams

_READ: Final = ["GET", "HEAD"]
_encode = msgspec.json.Encoder().encode


def application(
    streams: Streams,
    explanations: Explanations,
    files: Mapping[str, PageFile],
    data: PageData | None = None,
) -> ASGIApp:
    """Return what answers requests that the guard lets pass.

    Args:
        streams: the open streams.
        explanations: of single objects.
        files: of the page.
        data: answers what the page asks for beside the stream.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_exception_handler(404, _answer_not_found)
    app.add_exception_handler(Exception, _answer_error)

    @app.api_route("/", methods=_READ)
    async def index() -> Response:
        return _file(files.get(INDEX))

    @app.api_route("/static/{name:path}", methods=_READ)
    async def static(name: str) -> Response:
        return _file(files.get(name))

    @app.get("/api/events")
    async def events(request: Request) -> Response:
        if streams.full:
            return PlainTextResponse(
                f"The page is open {MOST_STREAMS} times: close one of its tabs.\n", 503
            )
        return EventStream(streams, request.headers.get("last-event-id", ""))

    @app.get("/api/explain/{kind}/{name}")
    async def of_cluster(kind: str, name: str) -> Response:
        if kind not in ("node", "gpu"):
            return _json(Explained(404, {"error": f"write /api/explain/{kind}/NAMESPACE/NAME"}))
        return _json(await explanations.of(kind, name))

    @app.get("/api/explain/{kind}/{namespace}/{name}")
    async def of_namespace(kind: str, namespace: str, name: str) -> Response:
        if kind not in ("pod", "hpa"):
            return _json(Explained(404, {"error": "write pod or hpa before the namespace"}))
        return _json(await explanations.of(kind, name, namespace))

    if data is not None:
        _add_data(app, data)
    return app


def _add_data(app: FastAPI, data: PageData) -> None:
    @app.get("/api/history")
    async def history(request: Request) -> Response:
        names = request.query_params.getlist("hpa")
        if len(names) > MOST_NAMES:
            text = f"name at most {MOST_NAMES} HPAs"
            return _json(Explained(400, {"error": text}))
        return Response(await data.history(names), media_type="application/json")

    @app.get("/api/idle.csv")
    async def idle() -> Response:
        text = data.idle_csv()
        if text is None:
            return PlainTextResponse("The idle GPUs have not been read yet: try again.\n", 503)
        name = 'attachment; filename="idle-gpus.csv"'
        return Response(text, media_type="text/csv", headers={"content-disposition": name})

    @app.get("/api/range")
    async def past(hpa: str = "", minutes: str = "60") -> Response:
        return _json(await data.range(hpa, minutes))


def _file(file: PageFile | None) -> Response:
    if file is None:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response(file.body, media_type=file.media_type)


def _json(answer: Explained) -> Response:
    return Response(_encode(answer.body), answer.status, media_type="application/json")


async def _answer_not_found(_: Request, __: Exception) -> Response:
    return PlainTextResponse("There is no such address.\n", 404)


async def _answer_error(request: Request, error: Exception) -> Response:
    """A mistake of this program: the page goes on, and the terminal names it."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    say(f"gpu-metrics-adapter: {request.url.path} failed: {text}; report it", err=True)
    sys.stderr.flush()
    return Response(_encode({"error": text}), 500, media_type="application/json")
