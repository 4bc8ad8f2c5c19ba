"""Paths and parameters become attributes that never fail and queries that may."""

from __future__ import annotations

import pytest

from apiservice.errors import ApiError, BadQuery, BadRequest, RouteNotFound, WatchNotSupported
from apiservice.identity import Attributes
from apiservice.labels.selector import EVERYTHING, parse
from apiservice.provider import ExternalQuery, GroupResource, ObjectQuery
from apiservice.wire.routes import (
    attributes,
    custom_query,
    external_query,
    locate,
    query_parameters,
)

_G = "custom.metrics.k8s.io"
_V = "v1beta2"
_BASE = f"/apis/{_G}/{_V}"
_EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"

ATTRIBUTES: dict[str, tuple[str, str, str, Attributes]] = {
    "pods by selector": (
        "GET",
        f"{_BASE}/namespaces/ns/pods/*/m",
        "labelSelector=app%3Dinf",
        Attributes("get", _G, _V, "pods", "m", "*", "ns"),
    ),
    "workload": (
        "GET",
        f"{_BASE}/namespaces/ns/deployments.apps/web/m",
        "",
        Attributes("get", _G, _V, "deployments.apps", "m", "web", "ns"),
    ),
    "node": ("GET", f"{_BASE}/nodes/n1/m", "", Attributes("get", _G, _V, "nodes", "m", "n1")),
    "namespace": (
        "GET",
        f"{_BASE}/namespaces/ns/metrics/m",
        "",
        Attributes("get", _G, _V, "metrics", "", "m", "ns"),
    ),
    "external": (
        "GET",
        f"{_EXTERNAL}/namespaces/ns/q",
        "",
        Attributes("list", "external.metrics.k8s.io", "v1beta1", "q", "", "", "ns"),
    ),
    "external watch": (
        "GET",
        f"{_EXTERNAL}/namespaces/ns/q",
        "watch=true",
        Attributes("watch", "external.metrics.k8s.io", "v1beta1", "q", "", "", "ns"),
    ),
    "external watch that is none": (
        "GET",
        f"{_EXTERNAL}/namespaces/ns/q",
        "watch=False",
        Attributes("list", "external.metrics.k8s.io", "v1beta1", "q", "", "", "ns"),
    ),
    "a namespace alone": (
        "GET",
        f"{_BASE}/namespaces/ns",
        "",
        Attributes("get", _G, _V, "namespaces", "", "ns", "ns"),
    ),
    "a namespace's own subresource": (
        "GET",
        f"{_BASE}/namespaces/ns/status",
        "",
        Attributes("get", _G, _V, "namespaces", "status", "ns", "ns"),
    ),
    "HEAD": ("HEAD", f"{_BASE}/nodes/n1/m", "", Attributes("get", _G, _V, "nodes", "m", "n1")),
    "POST": ("POST", f"{_BASE}/nodes/n1/m", "", Attributes("create", _G, _V, "nodes", "m", "n1")),
    "DELETE of all": (
        "DELETE",
        f"{_BASE}/nodes",
        "",
        Attributes("deletecollection", _G, _V, "nodes"),
    ),
    "unheard-of method": (
        "BREW",
        f"{_BASE}/nodes/n1/m",
        "",
        Attributes("", _G, _V, "nodes", "m", "n1"),
    ),
    "discovery": ("GET", f"{_BASE}/", "", Attributes("get", path=f"{_BASE}/")),
    "metrics": ("GET", "/metrics", "", Attributes("get", path="/metrics")),
    "root": ("OPTIONS", "/", "", Attributes("options", path="/")),
}


@pytest.mark.parametrize(("method", "path", "query", "wanted"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_a_request_has_the_attributes_a_kubernetes_server_gives_it(
    method: str, path: str, query: str, wanted: Attributes
) -> None:
    assert attributes(method, path, query_parameters(query.encode())) == wanted


PODS = GroupResource("pods", "")
CUSTOM: dict[str, tuple[str, str, ObjectQuery]] = {
    "pods by selector": (
        "namespaces/ns/pods/*/m",
        "labelSelector=app%3Dinf&metricLabelSelector=model%3DA100",
        ObjectQuery(PODS, "ns", None, "m", parse("app=inf"), parse("model=A100")),
    ),
    "one pod, with any selector": (
        "namespaces/ns/pods/p0/m",
        "labelSelector=app%3Dinf",
        ObjectQuery(PODS, "ns", "p0", "m", EVERYTHING, EVERYTHING),
    ),
    "the group begins at the first dot": (
        "namespaces/ns/ingresses.networking.k8s.io/i/m",
        "",
        ObjectQuery(
            GroupResource("ingresses", "networking.k8s.io"), "ns", "i", "m", EVERYTHING, EVERYTHING
        ),
    ),
    "a cluster-scoped kind": (
        "nodes/n1/m",
        "",
        ObjectQuery(GroupResource("nodes", ""), None, "n1", "m", EVERYTHING, EVERYTHING),
    ),
    "a cluster-scoped kind as an HPA asks": (
        "namespaces/ns/nodes/n1/m",
        "",
        ObjectQuery(GroupResource("nodes", ""), "ns", "n1", "m", EVERYTHING, EVERYTHING),
    ),
    "about a namespace": (
        "namespaces/ns/metrics/m",
        "",
        ObjectQuery(GroupResource("namespaces", ""), None, "ns", "m", EVERYTHING, EVERYTHING),
    ),
    "about all namespaces": (
        "namespaces/*/metrics/m",
        "labelSelector=team%3Dx",
        ObjectQuery(GroupResource("namespaces", ""), None, None, "m", parse("team=x"), EVERYTHING),
    ),
    "ignored options": (
        "namespaces/ns/pods/*/m",
        "pretty=true&limit=500&continue=abc&resourceVersion=0&timeoutSeconds=10&watch=1&foo=bar",
        ObjectQuery(PODS, "ns", None, "m", EVERYTHING, EVERYTHING),
    ),
    "the first of two values counts": (
        "namespaces/ns/pods/*/m",
        "labelSelector=a%3Db&labelSelector=c%3Dd",
        ObjectQuery(PODS, "ns", None, "m", parse("a=b"), EVERYTHING),
    ),
    "field selector that repeats the name": (
        "namespaces/ns/pods/p0/m",
        "fieldSelector=metadata.name%3Dp0",
        ObjectQuery(PODS, "ns", "p0", "m", EVERYTHING, EVERYTHING),
    ),
}


def _parts(path: str) -> tuple[str, ...]:
    where = locate(f"{_BASE}/{path}")
    assert where is not None
    return where.parts


@pytest.mark.parametrize(("path", "query", "expected"), CUSTOM.values(), ids=CUSTOM)
def test_a_custom_metrics_request_is_understood(
    path: str, query: str, expected: ObjectQuery
) -> None:
    assert custom_query(_parts(path), query_parameters(query.encode())) == expected


_NO_ROUTE = "the server could not find the requested resource"
CUSTOM_FAULTS: dict[str, tuple[str, str, type[ApiError], str]] = {
    "a namespace alone": ("namespaces/ns", "", BadRequest, "invalid request path"),
    "a namespace and a word": ("namespaces/ns/pods", "", BadRequest, "invalid request path"),
    "no metric": ("namespaces/ns/pods/p0", "", RouteNotFound, _NO_ROUTE),
    "too deep": ("namespaces/ns/pods/p0/m/x", "", RouteNotFound, _NO_ROUTE),
    "empty segment": ("namespaces/ns/pods//m", "", RouteNotFound, _NO_ROUTE),
    "a word": ("pods", "", RouteNotFound, _NO_ROUTE),
    "a namespace by way of another": (
        "namespaces/ns/namespaces/other/m",
        "",
        RouteNotFound,
        _NO_ROUTE,
    ),
    "all namespaces by way of one": ("namespaces/ns/namespaces/*/m", "", RouteNotFound, _NO_ROUTE),
    "a namespace by way of another, misspelt": (
        "namespaces/ns/namespaces./other/m",
        "",
        RouteNotFound,
        _NO_ROUTE,
    ),
    "label selector": (
        "namespaces/ns/pods/*/m",
        "labelSelector=a%3D%3D%3D",
        BadRequest,
        "unable to parse labelSelector: found '=' at character 3, expected: identifier",
    ),
    "label selector beside a name": (
        "namespaces/ns/pods/p0/m",
        "labelSelector=%21",
        BadRequest,
        "unable to parse labelSelector: found '' at character 1, expected: identifier",
    ),
    "metric selector": (
        "namespaces/ns/pods/*/m",
        "metricLabelSelector=a,",
        BadRequest,
        (
            "unable to parse metricLabelSelector: found '' at character 2, "
            "expected: identifier after ','"
        ),
    ),
    "broken escape": (
        "namespaces/ns/pods/*/m",
        "labelSelector=%zz",
        BadRequest,
        (
            "unable to parse labelSelector: '%zz' at character 0: name part must consist of "
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character"
        ),
    ),
    "limit": (
        "namespaces/ns/pods/*/m",
        "limit=ten",
        BadRequest,
        'unable to parse limit "ten": it must be an integer',
    ),
    "timeout": (
        "namespaces/ns/pods/*/m",
        "timeoutSeconds=",
        BadRequest,
        'unable to parse timeoutSeconds "": it must be an integer',
    ),
    "pretty": (
        "namespaces/ns/pods/*/m",
        "pretty=very",
        BadRequest,
        'unable to parse pretty "very": it must be true or false',
    ),
    "resource version": (
        "namespaces/ns/pods/*/m",
        "resourceVersion=x",
        BadRequest,
        'unable to parse resourceVersion "x": it must be a number',
    ),
    "field selector": (
        "namespaces/ns/pods/*/m",
        "fieldSelector=metadata.name%3Dp0",
        BadQuery,
        "fieldSelector metadata.name doesn't match requested name",  # prose: ignore
    ),
}


@pytest.mark.parametrize(
    ("path", "query", "kind", "message"), CUSTOM_FAULTS.values(), ids=CUSTOM_FAULTS
)
def test_a_custom_metrics_request_is_refused(
    path: str, query: str, kind: type[ApiError], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        custom_query(_parts(path), query_parameters(query.encode()))
    assert type(caught.value) is kind
    assert caught.value.message == message


def test_an_external_metrics_request_is_understood() -> None:
    parameters = query_parameters(b"labelSelector=queue%3Da&metricLabelSelector=%21&limit=1")
    expected = ExternalQuery("ns", "gpu_queue", parse("queue=a"))
    assert external_query(("namespaces", "ns", "gpu_queue"), parameters) == expected


EXTERNAL_FAULTS: dict[str, tuple[str, str, type[ApiError]]] = {
    "watch": ("namespaces/ns/q", "watch=true", WatchNotSupported),
    "watch without a value": ("namespaces/ns/q", "watch", WatchNotSupported),
    "a namespace alone": ("namespaces/ns", "", BadRequest),
    "too deep": ("namespaces/ns/q/x", "", RouteNotFound),
    "not in a namespace": ("nodes/n1/q", "", RouteNotFound),
    "empty segment": ("namespaces//q", "", RouteNotFound),
    "selector": ("namespaces/ns/q", "labelSelector=(", BadRequest),
    "field selector": ("namespaces/ns/q", "fieldSelector=a%3Db", BadQuery),
}


@pytest.mark.parametrize(("path", "query", "kind"), EXTERNAL_FAULTS.values(), ids=EXTERNAL_FAULTS)
def test_an_external_metrics_request_is_refused(
    path: str, query: str, kind: type[ApiError]
) -> None:
    with pytest.raises(ApiError) as caught:
        external_query(_parts(path), query_parameters(query.encode()))
    assert type(caught.value) is kind
