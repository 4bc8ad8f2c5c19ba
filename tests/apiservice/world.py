"""A server over fakes of its own ports, asked through ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from apiservice.app import create_app
from apiservice.delegate.delegation import Delegation
from apiservice.documents.health import HealthRegistry
from apiservice.errors import MetricNotFound, MetricUnknown, Unauthorized
from apiservice.identity import AccessDecision, Attributes, Scope, User
from apiservice.provider import (
    Answer,
    ExternalQuery,
    ExternalValue,
    GroupResource,
    MetricResource,
    MetricValue,
    ObjectQuery,
    ObjectReference,
)
from apiservice.runtime.steps import Steps
from apiservice.view.resource import ViewGroup

MEASURED = 1767323045
"""2026-01-02T03:04:05Z."""
NEVER = float("inf")
POD = GroupResource("pods", "")
NODE = GroupResource("nodes", "")
NAMESPACE = GroupResource("namespaces", "")


@dataclass
class FakeCustom:
    """Has ``gpu_utilization`` of pods p0 and p1, a node and a namespace."""

    version: int = 1
    expires: float = NEVER
    failure: Exception | None = None
    rows: list[MetricResource] = field(
        default_factory=lambda: [
            MetricResource(POD, "gpu_utilization", namespaced=True),
            MetricResource(NODE, "gpu_utilization", namespaced=False),
            MetricResource(NAMESPACE, "gpu_utilization", namespaced=False),
        ]
    )
    values_by_name: dict[str, int] = field(default_factory=lambda: {"p0": 87_500, "p1": 0})
    labels: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"p0": {"app": "inf"}, "p1": {"app": "other"}}
    )
    queries: list[ObjectQuery] = field(default_factory=list)

    def resources(self) -> Sequence[MetricResource]:
        return self.rows

    def values(self, query: ObjectQuery, now: float) -> Steps[Answer[MetricValue]]:
        self.queries.append(query)
        yield
        if self.failure is not None:
            raise self.failure
        if query.metric != "gpu_utilization":
            raise MetricUnknown(query.metric, query.resource)
        if query.resource == NODE:
            return Answer([_value("Node", query.name or "n0", None, 50_000)], self.expires)
        if query.resource == NAMESPACE:
            return Answer([_value("Namespace", query.name or "ns", None, 43_750)], self.expires)
        if query.resource != POD:
            raise MetricNotFound(query.metric, query.resource, query.name)
        if query.name is not None and query.name not in self.values_by_name:
            raise MetricNotFound(query.metric, query.resource, query.name)
        items = [
            _value("Pod", name, query.namespace, milli)
            for name, milli in self.values_by_name.items()
            if query.name in (None, name) and query.object_selector.matches(self.labels[name])
        ]
        return Answer(items, self.expires)


def _value(kind: str, name: str, namespace: str | None, milli: int) -> MetricValue:
    reference = ObjectReference(kind, name, namespace)
    return MetricValue(reference, "gpu_utilization", milli, MEASURED, 30)


@dataclass
class FakeExternal:
    """Knows ``gpu_queue``."""

    version: int = 1
    failure: Exception | None = None
    queries: list[ExternalQuery] = field(default_factory=list)

    def metrics(self) -> Sequence[str]:
        if self.failure is not None:
            raise self.failure
        return ["gpu_queue"]

    def values(self, query: ExternalQuery, now: float) -> Steps[Answer[ExternalValue]]:
        self.queries.append(query)
        yield
        if query.metric != "gpu_queue":
            raise MetricUnknown(query.metric)
        labels = {"queue": "a"}
        if not query.selector.matches(labels):
            return Answer([], NEVER)
        return Answer([ExternalValue("gpu_queue", labels, 42_000, MEASURED, 30)], NEVER)


class FakeAuthenticator:
    """Believes the ``x-user`` header; ``broken`` is a bad credential."""

    async def authenticate(self, scope: Scope) -> User:
        name = dict(scope["headers"]).get(b"x-user", b"hpa").decode()
        if name == "broken":
            raise Unauthorized
        return User(name, groups=("system:authenticated",))


@dataclass
class FakeAuthorizer:
    """Refuses the user ``u`` everything; remembers what was asked."""

    failure: Exception | None = None
    asked: list[tuple[User, Attributes]] = field(default_factory=list)
    known: dict[tuple[User, Attributes], AccessDecision] = field(default_factory=dict)
    reason: str = ""

    def known_decision(self, user: User, attributes: Attributes) -> AccessDecision | None:
        return self.known.get((user, attributes))

    async def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        self.asked.append((user, attributes))
        if self.failure is not None:
            raise self.failure
        return AccessDecision(user.name != "u", self.reason)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1767323050.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """A server and everything around it."""

    custom: FakeCustom
    external: FakeExternal
    authorizer: FakeAuthorizer
    health: HealthRegistry
    clock: Clock
    app: ASGIApp
    client: httpx.AsyncClient

    async def get(self, path: str, **headers: str) -> httpx.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.get(path, headers=sent)


async def make_world(
    views: ViewGroup | None = None, delegation: Delegation | None = None
) -> AsyncIterator[World]:
    """A server in front of fresh fakes."""
    custom, external, authorizer = FakeCustom(), FakeExternal(), FakeAuthorizer()
    health, clock = HealthRegistry(), Clock()
    app = create_app(
        custom=custom,
        external=external,
        authenticator=FakeAuthenticator(),
        authorizer=authorizer,
        health=health,
        registry=CollectorRegistry(),
        release="0.1.0",
        views=() if views is None else (views,),
        delegation=delegation,
        clock=clock,
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="https://adapter") as client:
        # httpx would send */* by itself; the tests say what is sent.
        client.headers.pop("accept", None)
        yield World(custom, external, authorizer, health, clock, app, client)
