"""What parsed requests may take in memory."""

from __future__ import annotations

import tracemalloc

import pytest

from apiservice.identity import Attributes
from apiservice.labels.selector import Selector
from apiservice.runtime.bytecache import ByteCache
from apiservice.selfmetrics.durations import Durations
from apiservice.wire.metricroutes import Route, RouteCache, custom_endpoint
from apiservice.wire.routes import ResourcePath
from tests.apiservice.world import FakeCustom

PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/m"
WHERE = ResourcePath("custom.metrics.k8s.io", "v1beta2", ("namespaces", "ns", "pods", "*", "m"))


def route(size: int = 0) -> Route:
    return Route(Attributes("get", resource="pods"), lambda _: None, Durations(), size)  # type: ignore[arg-type]  # no endpoint is called


def test_routes_are_bounded_in_bytes_and_the_oldest_make_room() -> None:
    routes = RouteCache(limit=100_000, largest=50_000)
    for number in range(1000):
        routes.add((PATH, b"labelSelector=a%3D" + b"%d" % number), route())

    assert 0 < routes.bytes <= 100_000
    assert routes.get((PATH, b"labelSelector=a%3D0")) is None
    assert routes.get((PATH, b"labelSelector=a%3D999")) is not None


def test_a_route_with_a_large_selector_or_a_long_line_is_not_kept() -> None:
    routes = RouteCache(limit=100_000, largest=20_000)
    routes.add((PATH, b"a"), route(size=30_000))
    routes.add((PATH, b"b" * 30_000), route())
    routes.add(("/" + "\U0001f642" * 6000, b""), route())

    assert routes.bytes == 0


def test_a_route_that_is_added_again_counts_once() -> None:
    routes = RouteCache()
    routes.add((PATH, b""), route())
    once = routes.bytes
    routes.add((PATH, b""), route())

    assert routes.bytes == once


def test_the_bound_holds_for_selectors_of_many_requirements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 1 << 19
    monkeypatch.setattr("apiservice.labels.selector._cache", ByteCache[str, Selector](1 << 20))
    endpoint, routes, durations = custom_endpoint(FakeCustom()), RouteCache(limit), Durations()
    tracemalloc.start()
    try:
        for seed in range(125):  # 3 MiB, were all of them kept
            text = ",".join(f"k{seed:x}{number:x}" for number in range(60))
            key = (PATH, text.encode())
            answer, size = endpoint.route(key, WHERE, {"labelSelector": text})
            routes.add(key, Route(Attributes("get", resource="pods"), answer, durations, size))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert routes.bytes <= limit
    assert held < 7 << 18, "0.5 MiB of routes, 1 MiB of selectors, and what sizes do not count"
