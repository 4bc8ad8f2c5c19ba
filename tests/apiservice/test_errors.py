"""Errors become metav1.Status in one place, byte for byte as clients know them."""

from __future__ import annotations

import pytest

from apiservice.errors import (
    ApiError,
    BadQuery,
    BadRequest,
    Forbidden,
    HeadersTooLarge,
    Internal,
    MethodNotAllowed,
    MetricNotFound,
    NotAcceptable,
    RouteNotFound,
    Unauthorized,
    Unavailable,
    UriTooLong,
    WatchNotSupported,
)
from apiservice.identity import Attributes, User
from apiservice.provider import GroupResource

_USER = User("u")
_POD_METRIC = Attributes(
    verb="get",
    group="custom.metrics.k8s.io",
    version="v1beta1",
    resource="pods",
    subresource="m",
    name="*",
    namespace="ns",
)
_NODE_METRIC = _POD_METRIC._replace(resource="nodes", name="n1", namespace="")
_EXTERNAL = Attributes(verb="list", group="external.metrics.k8s.io", resource="q", namespace="ns")

_HEAD = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'

CASES: dict[str, tuple[ApiError, bytes]] = {
    "bad request": (
        BadRequest("invalid request path"),
        b'"message":"invalid request path","reason":"BadRequest","code":400}',
    ),
    "bad query": (
        BadQuery("labels are not watched"),
        b'"message":"labels are not watched","reason":"BadRequest","code":400}',
    ),
    "unauthorized": (
        Unauthorized(),
        b'"message":"Unauthorized","reason":"Unauthorized","code":401}',
    ),
    "forbidden pods": (
        Forbidden(_USER, _POD_METRIC),
        (
            rb'"message":"pods.custom.metrics.k8s.io \"*\" is forbidden: User \"u\" cannot get '
            rb'resource \"pods/m\" in API group \"custom.metrics.k8s.io\" in the namespace \"ns\"",'
            rb'"reason":"Forbidden",'
            rb'"details":{"name":"*","group":"custom.metrics.k8s.io","kind":"pods"},"code":403}'
        ),
    ),
    "forbidden nodes": (
        Forbidden(_USER, _NODE_METRIC),
        (
            rb'"message":"nodes.custom.metrics.k8s.io \"n1\" is forbidden: User \"u\" cannot get '
            rb'resource \"nodes/m\" in API group \"custom.metrics.k8s.io\" at the cluster scope",'
            rb'"reason":"Forbidden",'
            rb'"details":{"name":"n1","group":"custom.metrics.k8s.io","kind":"nodes"},"code":403}'
        ),
    ),
    "forbidden external, with the authorizer's reason": (
        Forbidden(_USER, _EXTERNAL, "no rule"),
        (
            rb'"message":"q.external.metrics.k8s.io is forbidden: User \"u\" cannot list '
            rb"resource \"q\" in API group \"external.metrics.k8s.io\" in the namespace "
            rb'\"ns\": no rule",'
            rb'"reason":"Forbidden",'
            rb'"details":{"group":"external.metrics.k8s.io","kind":"q"},"code":403}'
        ),
    ),
    "forbidden path": (
        Forbidden(_USER, Attributes(verb="get", path="/metrics")),
        (
            rb'"message":"forbidden: User \"u\" cannot get path \"/metrics\"","reason":"Forbidden",'
            rb'"details":{},"code":403}'
        ),
    ),
    "forbidden path that looks like HTML": (
        Forbidden(_USER, Attributes(verb="get", path="/<b>&")),
        (
            rb'"message":"forbidden: User \"u\" cannot get path \"/&lt;b&gt;&amp;\"",'
            rb'"reason":"Forbidden","details":{},"code":403}'
        ),
    ),
    "metric": (
        MetricNotFound("M", GroupResource("pods", "")),
        (
            b'"message":"the server could not find the metric M for pods",'
            b'"reason":"NotFound","code":404}'
        ),
    ),
    "metric of one object": (
        MetricNotFound("M", GroupResource("deployments", "apps"), "web"),
        (
            b'"message":"the server could not find the metric M for deployments.apps web",'
            b'"reason":"NotFound","code":404}'
        ),
    ),
    "external metric": (
        MetricNotFound("m"),
        b'"message":"the server could not find the metric m","reason":"NotFound","code":404}',
    ),
    "route": (
        RouteNotFound(),
        (
            b'"message":"the server could not find the requested resource","reason":"NotFound",'
            b'"details":{},"code":404}'
        ),
    ),
    "method": (
        MethodNotAllowed(),
        (
            b'"message":"the server does not allow this method on the requested resource",'
            b'"reason":"MethodNotAllowed","details":{},"code":405}'
        ),
    ),
    "watch": (
        WatchNotSupported("external.metrics.k8s.io"),
        (
            rb'"message":"watch is not supported on resources of kind '
            rb'\"*.external.metrics.k8s.io\"",'
            rb'"reason":"MethodNotAllowed",'
            rb'"details":{"group":"external.metrics.k8s.io","kind":"*"},"code":405}'
        ),
    ),
    "media type": (
        NotAcceptable(),
        (
            b'"message":"only the following media types are accepted: application/json",'
            b'"reason":"NotAcceptable","code":406}'
        ),
    ),
    "long address": (
        UriTooLong(8192),
        (
            b'"message":"the request URI is longer than 8192 bytes","reason":"RequestURITooLong",'
            b'"details":{},"code":414}'
        ),
    ),
    "large headers": (
        HeadersTooLarge(65536),
        (
            b'"message":"the request headers are larger than 65536 bytes",'
            b'"reason":"RequestHeaderFieldsTooLarge","details":{},"code":431}'
        ),
    ),
    "internal": (
        Internal(ValueError("boom")),
        (
            b'"message":"Internal error occurred: boom","reason":"InternalError",'
            b'"details":{"causes":[{"message":"boom"}]},"code":500}'
        ),
    ),
    "unavailable": (
        Unavailable("no exporter was read yet"),
        b'"message":"no exporter was read yet","reason":"ServiceUnavailable","code":503}',
    ),
    "text that UTF-8 cannot carry": (
        BadRequest("odd \udcff"),
        b'"message":"odd ?","reason":"BadRequest","code":400}',
    ),
}


@pytest.mark.parametrize(("error", "tail"), CASES.values(), ids=CASES)
def test_an_error_is_a_status_of_upstreams_shape(error: ApiError, tail: bytes) -> None:
    assert error.body() == _HEAD + tail
