"""The API server as one ASGI application.

Every request passes the same steps: authenticate, authorize, negotiate, check the method, answer.
No metric is looked up before the request is authorized, so that a denial does not reveal what
exists. Metric routes are answered here from prepared bytes, :mod:`apiservice.view.endpoint` answers
read-only resources, and :mod:`apiservice.documents.pages` all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from apiservice.delegate.delegation import Delegation
from apiservice.documents.aggregateddiscovery import wants_aggregated
from apiservice.documents.discovery import Discovery
from apiservice.documents.health import ENDPOINTS, HealthRegistry
from apiservice.documents.pages import create_pages
from apiservice.errors import (
    ApiError,
    Forbidden,
    Internal,
    MethodNotAllowed,
    MetricUnknown,
    NotAcceptable,
    RouteNotFound,
)
from apiservice.identity import AccessDecision, Attributes, Authenticator, Authorizer, User
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider
from apiservice.runtime.shares import ASKER, Asker
from apiservice.selfmetrics.requeststats import RequestStats
from apiservice.view.endpoint import ViewEndpoint
from apiservice.view.resource import ViewGroup
from apiservice.wire.accept import accept_header, accepts_json
from apiservice.wire.answers import LARGE, Key, Prepared, json_messages
from apiservice.wire.largeanswers import SENT_BYTES, LargeAnswers, run_while_connected
from apiservice.wire.metricroutes import (
    Asked,
    Endpoint,
    Route,
    RouteCache,
    custom_endpoint,
    external_endpoint,
)
from apiservice.wire.metricvalues import (
    CUSTOM_GROUP,
    CUSTOM_VERSIONS,
    EXTERNAL_GROUP,
    EXTERNAL_VERSIONS,
)
from apiservice.wire.routes import (
    ResourcePath,
    attributes,
    check_parameters,
    locate,
    query_parameters,
)

log = structlog.get_logger(__name__)

_PUBLIC = frozenset(f"/{endpoint}" for endpoint in ENDPOINTS)
"""``alwaysAllowPaths`` of k8s.io/apiserver: exactly these, not the checks below them."""
_JSON_PAGES = ("/apis", "/openapi", "/version")
_PAGE_LABELS = {
    "": "index",
    "apis": "discovery",
    "openapi": "openapi",
    "version": "version",
    "metrics": "metrics",
} | dict.fromkeys(ENDPOINTS, "health")


def create_app(
    *,
    custom: CustomMetricsProvider | None,
    external: ExternalMetricsProvider | None,
    authenticator: Authenticator,
    authorizer: Authorizer,
    health: HealthRegistry,
    registry: CollectorRegistry,
    release: str,
    views: Sequence[ViewGroup] = (),
    delegation: Delegation | None = None,
    clock: Callable[[], float] = time.time,
) -> ASGIApp:
    """Return the application that serves the groups that have a provider.

    ``delegation`` answers about metrics that no provider has.

    ``release`` is this server's version (``0.1.0``). ``registry`` is what ``/metrics`` shows; the
    request counts are added to it.
    """
    endpoints: dict[tuple[str, str], Endpoint] = {}
    if custom is not None:
        endpoint = custom_endpoint(custom)
        endpoints |= {(CUSTOM_GROUP, version): endpoint for version in CUSTOM_VERSIONS}
    if external is not None:
        endpoint = external_endpoint(external)
        endpoints |= {(EXTERNAL_GROUP, version): endpoint for version in EXTERNAL_VERSIONS}
    discovery = Discovery(custom, external, views, delegation)
    return ApiServer(
        endpoints=endpoints,
        views=views,
        pages=create_pages(discovery, health, registry, release, clock),
        authenticator=authenticator,
        authorizer=authorizer,
        stats=RequestStats(registry),
        delegation=delegation,
        clock=clock,
    )


class ApiServer:
    """Admits requests, answers metric routes, and forwards the others."""

    def __init__(
        self,
        *,
        endpoints: dict[tuple[str, str], Endpoint],
        views: Sequence[ViewGroup],
        pages: ASGIApp,
        authenticator: Authenticator,
        authorizer: Authorizer,
        stats: RequestStats,
        delegation: Delegation | None,
        clock: Callable[[], float],
    ) -> None:
        self._endpoints = endpoints
        lists = LargeAnswers(most=SENT_BYTES // 2)
        self._views = {
            (group.group, group.version): ViewEndpoint(group, clock, lists) for group in views
        }
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._stats = stats
        self._delegation = delegation
        self._clock = clock
        self._routes = RouteCache()
        self._large = LargeAnswers()
        stats.queues |= {"metrics": self._large, "view": lists}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI connection scope."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._pages(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        key: Key = (scope["path"], scope["query_string"])
        route = self._routes.get(key)
        if route is None or scope["method"] != "GET":
            await self._first(scope, receive, send, key, started)
            return
        try:
            user = await self._admit(scope, route.attributes)
            if not accepts_json(accept_header(scope["headers"])):
                raise NotAcceptable
            prepared = route.asked.recall(self._clock())
            if prepared is None or prepared.large:
                del prepared  # a body that waits for its turn would take memory
                ASKER.set(Asker(route.attributes.namespace, user.name))
                await self._answer(route.asked, receive, send)
            else:
                await send(prepared.start)
                await send(prepared.body)
        except MetricUnknown:  # the configuration changed since the route was cached
            await self._first(scope, receive, send, key, started)
            return
        except Exception as error:
            await self._fail(scope, send, error, started)
            return
        route.answered.observe(perf_counter() - started)

    async def _answer(self, asked: Asked, receive: Receive, send: Send) -> None:
        """Answer a request whose answer is large or not prepared."""
        prepared = await asked.soon(self._clock())
        if prepared is None or prepared.large:
            del prepared
            await self._large.answer(asked.key[0], partial(asked.fresh, self._clock), receive, send)
        else:
            await send(prepared.start)
            await send(prepared.body)

    async def _admit(self, scope: Scope, wanted: Attributes) -> User:
        user = await self._authenticator.authenticate(scope)
        decision = await self._decide(user, wanted)
        if not decision.allowed:
            raise Forbidden(user, wanted, decision.reason)
        return user

    async def _decide(self, user: User, wanted: Attributes) -> AccessDecision:
        decision = self._authorizer.known_decision(user, wanted)
        if decision is None:
            decision = await self._authorizer.authorize(user, wanted)
        return decision

    async def _first(
        self, scope: Scope, receive: Receive, send: Send, key: Key, started: float
    ) -> None:
        """Answer a request line that has not been admitted and parsed before."""
        where = locate(key[0])
        watch = _Watch(send)
        try:
            if where is None:
                await self._page(scope, receive, watch)
            else:
                await self._resource(scope, where, receive, watch, key)
        except Exception as error:
            if watch.code == 0:
                await self._fail(scope, send, error, started)
                return
            # The pages send an error response before they raise the error.
            _log_failure(scope, error)
        label, version = self._labels(key[0], where)
        self._stats.series(label, version, watch.code).observe(perf_counter() - started)

    async def _resource(
        self, scope: Scope, where: ResourcePath, receive: Receive, send: Send, key: Key
    ) -> None:
        parameters = query_parameters(key[1])
        wanted = attributes(scope["method"], key[0], parameters)
        user = await self._admit(scope, wanted)
        check_parameters(key[1])
        ASKER.set(Asker(wanted.namespace, user.name))
        if (view := self._views.get((where.group, where.version))) is not None:

            async def may_list() -> bool:
                listing = wanted._replace(verb="list", name="")
                return (await self._decide(user, listing)).allowed

            await view.answer(scope, where, receive, send, may_list)
            return
        endpoint = self._endpoints.get((where.group, where.version))
        if endpoint is None:
            raise RouteNotFound
        if not accepts_json(accept_header(scope["headers"])):
            raise NotAcceptable
        if scope["method"] != "GET":
            raise MethodNotAllowed
        asked, size = endpoint.route(key, where, parameters)
        try:
            await self._answer(asked, receive, send)
        except MetricUnknown:
            # Not cached as a route: what a delegate answers is not known here.
            if not await self._delegate(scope, where, receive, send):
                raise
            return
        answered = self._stats.series(endpoint.label, where.version, 200)
        self._routes.add(key, Route(wanted, asked, answered, size))

    async def _delegate(
        self, scope: Scope, where: ResourcePath, receive: Receive, send: Send
    ) -> bool:
        """Answer an authorized request about a metric that no provider has.

        Returns:
            False if no delegate has the metric either, and nothing was sent.
        """
        if self._delegation is None:
            return False
        parameters = query_parameters(scope["query_string"])
        # A client that leaves gives its place at the delegate back.
        delegated = await run_while_connected(
            receive, self._delegation.answer(where, parameters, scope["headers"])
        )
        if delegated is None:
            return False
        large = len(delegated.body) > LARGE
        prepared = Prepared(*json_messages(delegated.code, delegated.body), 0.0, large)
        if large:
            await self._large.answer(scope["path"], partial(_itself, prepared), receive, send)
            return True
        await send(prepared.start)
        await send(prepared.body)
        return True

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path not in _PUBLIC or scope["method"] not in ("GET", "HEAD"):
            await self._admit(scope, Attributes(verb=scope["method"].lower(), path=path))
        if path.startswith(_JSON_PAGES) and not _accepts_page(path, scope):
            raise NotAcceptable
        await self._pages(scope, receive, send)

    async def _fail(self, scope: Scope, send: Send, error: Exception, started: float) -> None:
        if not isinstance(error, ApiError):
            _log_failure(scope, error)
            error = Internal(error)
        start, body = json_messages(error.code, error.body())
        if isinstance(error, MethodNotAllowed):
            start["headers"].append((b"allow", b"GET"))
        await send(start)
        await send(body)
        label, version = self._labels(scope["path"], locate(scope["path"]))
        self._stats.series(label, version, error.code).observe(perf_counter() - started)

    def _labels(self, path: str, where: ResourcePath | None) -> tuple[str, str]:
        """Return route and API version to count a request as, from a fixed set."""
        if where is None:
            return _PAGE_LABELS.get(path.strip("/").partition("/")[0], "other"), ""
        if (where.group, where.version) in self._views:
            return "view", where.version
        endpoint = self._endpoints.get((where.group, where.version))
        return ("other", "") if endpoint is None else (endpoint.label, where.version)


class _Watch:
    """Forwards messages and records the status code; 0 until one was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.code = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
        await self._send(message)


async def _itself(prepared: Prepared) -> Prepared:
    return prepared


def _accepts_page(path: str, scope: Scope) -> bool:
    accept = accept_header(scope["headers"])
    if accepts_json(accept):
        return True
    return path.rstrip("/") == "/apis" and wants_aggregated(accept) is not None


def _log_failure(scope: Scope, error: Exception) -> None:
    log.error("request failed", method=scope["method"], path=scope["path"], exc_info=error)
