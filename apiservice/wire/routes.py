"""Parsing of request lines: authorization attributes, and the metric query of a path.

The attributes follow ``k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`` and never fail, so
that authorization runs before any other check. Paths are matched decoded: Go sends ``*`` as
``%2A``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from apiservice.errors import BadQuery, BadRequest, RouteNotFound, WatchNotSupported
from apiservice.identity import Attributes
from apiservice.labels.fields import parse_fields
from apiservice.labels.requirement import integer
from apiservice.labels.selector import EVERYTHING, Selector, SelectorError
from apiservice.labels.selector import parse as parse_selector
from apiservice.provider import ExternalQuery, GroupResource, ObjectQuery

ANY = "*"
_MOST_PARAMETERS: Final = 100
"""Parameters of a query. List options and selectors are fewer than 20; to read 8,000 took 10 ms."""
NAMESPACES = GroupResource("namespaces", "")
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_PARTS = ("status", "finalize")
_FALSE = ("0", "false")
_BOOLEANS = frozenset({"1", "t", "true", "0", "f", "false", ""})
NAME_FIELD = "metadata.name"
_NO_SEGMENT = re.compile(r"[/%]")
_RESOURCE_VERSION = re.compile(r"[0-9]*")


class ResourcePath(NamedTuple):
    """A path below ``/apis/GROUP/VERSION/``."""

    group: str
    version: str
    parts: tuple[str, ...]
    """The path's segments after the version: at least one, none validated."""


def locate(path: str) -> ResourcePath | None:
    """Return the group-version that a decoded path is below, or None for any other path."""
    segments = path.strip("/").split("/")
    if len(segments) < 4 or segments[0] != "apis":
        return None
    return ResourcePath(segments[1], segments[2], tuple(segments[3:]))


def attributes(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Return what a request wants, for the authorizer."""
    where = locate(path)
    if where is None:
        return Attributes(verb=method.lower(), path=path)
    parts, namespace = where.parts, ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    verb = _VERBS.get(method, "")
    if not name and verb == "get":
        verb = "watch" if truth(query, "watch") else "list"
        name = _selected_name(query)
    if not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(
        verb=verb,
        group=where.group,
        version=where.version,
        resource=parts[0],
        subresource=parts[2] if len(parts) > 2 else "",
        name=name,
        namespace=namespace,
    )


def _selected_name(query: Mapping[str, str]) -> str:
    """Return the name to which a field selector restricts a list, or an empty text."""
    if "fieldSelector" not in query:
        return ""
    try:
        name = parse_fields(query["fieldSelector"]).exact(NAME_FIELD) or ""
    except SelectorError:
        return ""  # answered with 400 after the authorization
    return "" if name in (".", "..") or _NO_SEGMENT.search(name) else name


def query_parameters(query_string: bytes) -> dict[str, str]:
    """Return the first value of each parameter, as Go's conversion does.

    Of a query with more than 100 parameters only those are read, as far as the authorization needs
    them; :func:`check_parameters` then refuses it.
    """
    parameters: dict[str, str] = {}
    first = query_string.split(b"&", _MOST_PARAMETERS)[:_MOST_PARAMETERS]
    text = b"&".join(first).decode("latin-1")
    for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
        parameters.setdefault(name, value)
    return parameters


def check_parameters(query_string: bytes) -> None:
    """Raise BadRequest for a query with more parameters than are read."""
    if query_string.count(b"&") >= _MOST_PARAMETERS:
        raise BadRequest(f"the query has more than {_MOST_PARAMETERS} parameters")


def custom_query(parts: tuple[str, ...], query: Mapping[str, str]) -> ObjectQuery:
    """Return the query of a path below ``custom.metrics.k8s.io``.

    Raises:
        RouteNotFound: no metric route has this shape.
        BadRequest: a parameter does not parse, or a namespace is not followed by a metric.
        BadQuery: a field selector contradicts the path.
    """
    resource, namespace, name, metric = _custom_route(parts)
    check_list_options(query)
    field_selector = query.get("fieldSelector", "")
    if field_selector not in ("", f"metadata.name={name}", f"metadata.name=={name}"):
        raise BadQuery("fieldSelector metadata.name doesn't match requested name")  # prose: ignore
    object_selector = label_selector(query, "labelSelector")
    return ObjectQuery(
        resource=GroupResource.parse(resource),
        namespace=namespace,
        name=None if name == ANY else name,
        metric=metric,
        object_selector=object_selector if name == ANY else EVERYTHING,
        metric_selector=label_selector(query, "metricLabelSelector"),
    )


def _custom_route(parts: tuple[str, ...]) -> tuple[str, str | None, str, str]:
    """Return resource, namespace, name and metric."""
    if "" in parts:
        raise RouteNotFound
    if parts[0] != "namespaces":
        if len(parts) != 3:
            raise RouteNotFound
        return parts[0], None, parts[1], parts[2]
    if len(parts) in (2, 3):
        raise BadRequest("invalid request path")
    if len(parts) == 4 and parts[2] == "metrics":
        return "namespaces", None, parts[1], parts[3]
    if len(parts) == 5 and GroupResource.parse(parts[2]) != NAMESPACES:
        return parts[2], parts[1], parts[3], parts[4]
    # Below another namespace, a right in that namespace would allow reading about this one.
    raise RouteNotFound


def external_query(parts: tuple[str, ...], query: Mapping[str, str]) -> ExternalQuery:
    """Return the query of a path below ``external.metrics.k8s.io``.

    Raises:
        RouteNotFound, BadRequest, BadQuery: as for :func:`custom_query`.
        WatchNotSupported: ``watch=true``.
    """
    if "" in parts or parts[0] != "namespaces":
        raise RouteNotFound
    if len(parts) == 2:
        raise BadRequest("invalid request path")
    if len(parts) != 3:
        raise RouteNotFound
    check_list_options(query)
    if truth(query, "watch"):
        raise WatchNotSupported("external.metrics.k8s.io")
    if query.get("fieldSelector"):
        raise BadQuery("field selectors are not supported on external metrics: use labelSelector")
    return ExternalQuery(parts[1], parts[2], label_selector(query, "labelSelector"))


def truth(query: Mapping[str, str], name: str) -> bool:
    """Go's conversion: everything but absence, ``0`` and ``false`` is true."""
    return (value := query.get(name)) is not None and value.lower() not in _FALSE


def label_selector(query: Mapping[str, str], name: str) -> Selector:
    """Return the selector in a parameter. Raise BadRequest if it does not parse."""
    try:
        return parse_selector(query.get(name, ""))
    except SelectorError as error:
        message = f"unable to parse {name}: {error}"
        raise BadRequest(message) from error


def check_list_options(query: Mapping[str, str]) -> None:
    """Check list options. They are ignored, but must have the right type."""
    for name in ("limit", "timeoutSeconds"):
        if (value := query.get(name)) is not None and integer(value) is None:
            message = f'unable to parse {name} "{value}": it must be an integer'
            raise BadRequest(message)
    if (value := query.get("pretty", "")).lower() not in _BOOLEANS:
        message = f'unable to parse pretty "{value}": it must be true or false'
        raise BadRequest(message)
    if _RESOURCE_VERSION.fullmatch(value := query.get("resourceVersion", "")) is None:
        message = f'unable to parse resourceVersion "{value}": it must be a number'
        raise BadRequest(message)
