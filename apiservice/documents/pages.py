"""The application for everything but metric values: discovery, OpenAPI, health, version, index.

A FastAPI application of static documents. :mod:`apiservice.app` has authorized and negotiated a
request before it arrives here.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta
from email.utils import formatdate

import msgspec
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.exceptions import HTTPException

from apiservice.documents.aggregateddiscovery import media_type, wants_aggregated
from apiservice.documents.discovery import Discovery
from apiservice.documents.document import Document
from apiservice.documents.health import ENDPOINTS, HealthRegistry
from apiservice.documents.openapi import OpenApi
from apiservice.documents.probes import add_health_page, health_response
from apiservice.errors import ApiError, Internal, MethodNotAllowed, RouteNotFound
from apiservice.runtime.steps import run_in_slices
from apiservice.wire.accept import accept_header
from apiservice.wire.delegationheader import DELEGATED

_json = msgspec.json.Encoder().encode
_READ = ["GET", "HEAD"]
_HASHED_FOR = timedelta(days=365)


def create_pages(
    discovery: Discovery,
    health: HealthRegistry,
    registry: CollectorRegistry,
    release: str,
    clock: Callable[[], float],
) -> FastAPI:
    """Return the application. ``release`` is this server's version, such as ``0.1.0``."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    openapi = OpenApi(discovery.metric_versions(), release, discovery.views)

    def index() -> bytes:
        return _json({"paths": _paths(discovery, openapi, health)})

    _add_discovery(app, discovery)
    _add_openapi(app, openapi, clock)
    _add_health(app, health)
    _add_errors(app, index)
    version = _json(version_info(release))

    @app.api_route("/", methods=_READ)
    async def root() -> Response:
        return _json_response(index())

    @app.get("/version")
    @app.get("/version/")
    async def show_version() -> Response:
        return _json_response(version)

    @app.api_route("/metrics", methods=_READ)
    async def metrics() -> Response:
        text = await run_in_slices(exposition(registry))
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return app


class _One:
    """A registry with a single family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def exposition(registry: CollectorRegistry) -> Generator[None, None, bytes]:
    """Render a registry family by family, because all of them at once take 10 ms."""
    parts = []
    for family in registry.collect():
        parts.append(generate_latest(_One(family)))
        yield
    return b"".join(parts)


def version_info(release: str) -> dict[str, str]:
    """apimachinery's ``version.Info``; keys that say nothing about Python are empty."""
    major, _, rest = release.partition(".")
    machine = platform.machine()
    return {
        "major": major,
        "minor": rest.partition(".")[0],
        "gitVersion": f"v{release}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_GO_ARCH.get(machine, machine)}",
    }


_GO_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def _paths(discovery: Discovery, openapi: OpenApi, health: HealthRegistry) -> list[str]:
    paths = {"/apis", "/metrics", "/openapi/v2", "/openapi/v3", "/version"}
    for group, version in discovery.group_versions():
        paths |= {f"/apis/{group}", f"/apis/{group}/{version}"}
    paths |= {f"/openapi/v3/{name}" for name in openapi.v3}
    for endpoint in ENDPOINTS:
        paths.add(f"/{endpoint}")
        paths |= {f"/{endpoint}/{name}" for name in health.names(endpoint)}
    return sorted(paths)


def _json_response(body: bytes, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    headers = {"cache-control": "no-cache, private"} | (headers or {})
    return Response(body, code, headers, "application/json")


def _add_discovery(app: FastAPI, discovery: Discovery) -> None:
    @app.get("/apis")
    @app.get("/apis/")
    async def groups(request: Request) -> Response:
        form = wants_aggregated(accept_header(request.scope["headers"]))
        if form is None:
            return _json_response(discovery.group_list, headers={"vary": "Accept"})
        response = _document(request, discovery.aggregated_document(form))
        response.headers["content-type"] = media_type(form)
        return response

    @app.get("/apis/{group}")
    @app.get("/apis/{group}/")
    async def group(group: str) -> Response:
        return _found_response(discovery.group(group))

    @app.get("/apis/{group}/{version}")
    @app.get("/apis/{group}/{version}/")
    async def resources(request: Request, group: str, version: str) -> Response:
        # A server that delegates lists only what this server has: two servers that delegate to
        # each other would list each other's metrics forever.
        shown = discovery.own if DELEGATED in request.headers else discovery
        return _found_response(shown.resource_list(group, version))


def _found_response(body: bytes | None) -> Response:
    if body is None:
        raise RouteNotFound
    return _json_response(body)


def _add_openapi(app: FastAPI, openapi: OpenApi, clock: Callable[[], float]) -> None:
    @app.api_route("/openapi/v2", methods=_READ)
    async def v2(request: Request) -> Response:
        return _document(request, openapi.v2)

    @app.api_route("/openapi/v3", methods=_READ)
    @app.api_route("/openapi/v3/", methods=_READ)
    async def v3_root(request: Request) -> Response:
        return _document(request, openapi.v3_root)

    @app.api_route("/openapi/v3/{name:path}", methods=_READ)
    async def v3(request: Request, name: str) -> Response:
        document = openapi.v3.get(name)
        if document is None:
            raise HTTPException(404)
        asked_hash = request.query_params.get("hash", "")
        if asked_hash not in ("", document.hash):
            return Response(status_code=301, headers={"location": openapi.url(name, document)})
        response = _document(request, document)
        if asked_hash:
            # The URL contains the hash of the content, so the content never changes.
            response.headers["cache-control"] = "public, immutable"
            response.headers["expires"] = formatdate(
                clock() + _HASHED_FOR.total_seconds(), usegmt=True
            )
        return response


def _document(request: Request, document: Document) -> Response:
    headers = {"etag": document.etag, "vary": "Accept"}
    candidates = request.headers.get("if-none-match", "")
    if any(tag.strip().removeprefix("W/") in (document.etag, "*") for tag in candidates.split(",")):
        return Response(status_code=304, headers=headers)
    return _json_response(document.body, headers=headers)


def _add_health(app: FastAPI, health: HealthRegistry) -> None:
    for endpoint in ENDPOINTS:
        add_health_page(app, health, endpoint)
        _add_single_check(app, health, endpoint)


def _add_single_check(app: FastAPI, health: HealthRegistry, endpoint: str) -> None:
    @app.api_route(f"/{endpoint}/{{name}}", methods=_READ)
    async def one_check(name: str) -> Response:
        report = health.single(endpoint, name)
        if report is None:
            raise HTTPException(404)
        return health_response(report)


def _add_errors(app: FastAPI, index: Callable[[], bytes]) -> None:
    def status(error: ApiError) -> Response:
        headers = {"allow": "GET"} if isinstance(error, MethodNotAllowed) else None
        return _json_response(error.body(), error.code, headers)

    async def api_error(_: Request, error: Exception) -> Response:
        return status(error if isinstance(error, ApiError) else Internal(error))

    async def http_error(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        if code == 405:
            return status(MethodNotAllowed())
        if code == 404 and not request.scope["path"].startswith("/apis/"):
            return _json_response(index(), 404)
        return status(RouteNotFound() if code == 404 else Internal(error))

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, api_error)
