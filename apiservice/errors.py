"""Every error that API clients can get, and its mapping to ``metav1.Status``.

Texts and details are those of ``k8s.io/apimachinery/pkg/api/errors/errors.go``,
``k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`` and
``custom-metrics-apiserver/pkg/provider/errors.go``. No response has ``Retry-After``: client-go
would sleep that long inside an HPA worker.
"""

# ruff: noqa: N818 - the names are those of the Kubernetes reasons.

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec

from apiservice.identity import Attributes, User

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def quote_text(text: str) -> str:
    """Return ``text`` in double quotes with its control characters escaped, as Go's ``%q``."""
    return msgspec.json.encode(_clean(text)).decode()


def _clean(text: str) -> str:
    """Return ``text`` without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


class ApiError(Exception):
    """A response other than 200. Subclasses define the code and the reason, or inherit them."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init_subclass__(cls, *, code: int | None = None, reason: str | None = None) -> None:
        cls.code = cls.code if code is None else int(code)
        cls.reason = cls.reason if reason is None else reason

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        """The ``metav1.Status`` object, without ``details`` if there are none."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": _clean(self.message),
            "reason": self.reason,
        }
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    def body(self) -> bytes:
        """The Status as JSON, for every accepted media type."""
        return msgspec.json.encode(self.status())


class BadRequest(ApiError, code=HTTPStatus.BAD_REQUEST, reason="BadRequest"):
    """The request does not parse; the message is the parse error."""


class BadQuery(BadRequest):
    """The request parses but this server cannot answer it."""


class Unauthorized(ApiError, code=HTTPStatus.UNAUTHORIZED, reason="Unauthorized"):
    """Credentials were sent and are not valid. The text reveals nothing to an attacker."""

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(ApiError, code=HTTPStatus.FORBIDDEN, reason="Forbidden"):
    """The user does not have the right."""

    def __init__(self, user: User, attributes: Attributes, why: str = "") -> None:
        refusal = _refusal(user, attributes).translate(_HTML)
        if why:
            refusal = f"{refusal}: {why}"
        if not attributes.resource:
            super().__init__(f"forbidden: {refusal}", {})
            return
        resource = f"{attributes.resource}.{attributes.group}"
        details = {
            "name": _clean(attributes.name),
            "group": attributes.group,
            "kind": _clean(attributes.resource),
        }
        # kube-apiserver names the object only if the request does (NewForbidden).
        target = (
            f"{resource} {quote_text(attributes.name)}" if attributes.name else _clean(resource)
        )
        message = f"{target} is forbidden: {refusal}"
        super().__init__(message, {key: text for key, text in details.items() if text})


def _refusal(user: User, attributes: Attributes) -> str:
    name, verb = quote_text(user.name), attributes.verb
    if not attributes.resource:
        return f"User {name} cannot {verb} path {quote_text(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    where = (
        f"in the namespace {quote_text(attributes.namespace)}"
        if attributes.namespace
        else "at the cluster scope"
    )
    group = quote_text(attributes.group)
    return f"User {name} cannot {verb} resource {quote_text(resource)} in API group {group} {where}"


class NotFound(ApiError, code=HTTPStatus.NOT_FOUND, reason="NotFound"):
    """The object, metric or route does not exist."""


class MetricNotFound(NotFound):
    """The metric is not known, or the named object has no value.

    ``resource`` is a ``GroupResource`` or its text; ``name`` is the one requested object, and
    ``why`` says why it has no value.
    """

    def __init__(
        self, metric: str, resource: object = "", name: str | None = None, why: str = ""
    ) -> None:
        message = f"the server could not find the metric {metric}"
        if text := str(resource):
            message = f"{message} for {text}"
        if name is not None:
            message = f"{message} {name}"
        if why:
            message = f"{message}: {why}"
        super().__init__(message)


class MetricUnknown(MetricNotFound):
    """This server has no metric of this name for the resource; a delegate may have it."""


class LoopDetected(ApiError, code=HTTPStatus.LOOP_DETECTED, reason="LoopDetected"):
    """A server that delegates asked for a metric that this server would delegate further."""


def _full(plural: str, group: str) -> str:
    """Return a resource with its group, if that has a name."""
    return f"{plural}.{group}" if group else plural


class ObjectNotFound(NotFound):
    """A resource has no object of this name; ``like`` are names that resemble it."""

    def __init__(self, group: str, plural: str, name: str, like: Sequence[str] = ()) -> None:
        message = f"{_full(plural, group)} {quote_text(name)} not found"
        if like:
            message = f"{message}: did you mean {', '.join(map(quote_text, like))}?"
        super().__init__(message, {"name": _clean(name), "group": group, "kind": plural})


class RouteNotFound(NotFound):
    """This API server does not serve the path."""

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource", {})


class MethodNotAllowed(ApiError, code=HTTPStatus.METHOD_NOT_ALLOWED, reason="MethodNotAllowed"):
    """Every route is GET only."""

    def __init__(
        self,
        message: str = "the server does not allow this method on the requested resource",
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, {} if details is None else details)


class WatchNotSupported(MethodNotAllowed):
    """``watch=true`` where only lists are served."""

    def __init__(self, group: str) -> None:
        message = f'watch is not supported on resources of kind "*.{group}"'
        super().__init__(message, {"group": group, "kind": "*"})


class ViewNotWatchable(MethodNotAllowed):
    """``watch=true`` on a resource whose objects are computed when they are requested."""

    def __init__(self, group: str, plural: str) -> None:
        message = (
            f"watch is not supported on {_full(plural, group)}: its objects are computed when they "
            f'are requested; repeat the list instead, as with "watch -n 5 kubectl get {plural}"'
        )
        super().__init__(message, {"group": group, "kind": plural})


class NotAcceptable(ApiError, code=HTTPStatus.NOT_ACCEPTABLE, reason="NotAcceptable"):
    """The Accept header does not allow JSON."""

    def __init__(self, accepted: str = "application/json") -> None:
        super().__init__(f"only the following media types are accepted: {accepted}")


class PayloadTooLarge(
    ApiError, code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason="RequestEntityTooLarge"
):
    """The body is larger than the server reads; no route needs one."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the request body is larger than {limit} bytes", {})


class UriTooLong(ApiError, code=HTTPStatus.REQUEST_URI_TOO_LONG, reason="RequestURITooLong"):
    """The request target is longer than the server reads."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the request URI is longer than {limit} bytes", {})


class TooManyRequests(ApiError, code=HTTPStatus.TOO_MANY_REQUESTS, reason="TooManyRequests"):
    """The client has caused more work than its share; the message names the limit."""

    def __init__(self, why: str) -> None:
        super().__init__(f"too many requests: {why}", {})


class HeadersTooLarge(
    ApiError, code=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason="RequestHeaderFieldsTooLarge"
):
    """The request's headers are larger than the server reads."""

    def __init__(self, limit: int | str) -> None:
        size = f"larger than {limit} bytes" if isinstance(limit, int) else f"too large: {limit}"
        super().__init__(f"the request headers are {size}", {})


class ClientGone(ApiError, code=499, reason="ClientGone"):
    """The client closed its connection before the answer was ready."""

    def __init__(self) -> None:
        super().__init__("the client closed its connection")


class Internal(ApiError, code=HTTPStatus.INTERNAL_SERVER_ERROR, reason="InternalError"):
    """This server failed; the message names the cause without its traceback."""

    def __init__(self, cause: object) -> None:
        text = _clean(str(cause))
        super().__init__(f"Internal error occurred: {text}", {"causes": [{"message": text}]})


class Unavailable(ApiError, code=HTTPStatus.SERVICE_UNAVAILABLE, reason="ServiceUnavailable"):
    """The needed data has never been read or is not reliable; the message says which."""
