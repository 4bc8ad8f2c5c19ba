"""TokenReview and SubjectAccessReview requests to the kube-apiserver.

Both requests only ask, so a repetition does no harm. A broken connection or a 5xx is retried until
the time limit, as ``DefaultAuthWebhookRetryBackoff`` does upstream.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import msgspec
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

from apiservice.auth.tokens import ReviewError
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.clusterclient import ClusterClient
from apiservice.selfmetrics.durations import SLOW, Durations

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TIMEOUT = 10.0
"""Seconds for a review with its retries: the time limit of the upstream client."""
_TRIES = 4
"""Tries of one review, with pauses of 0.2, 0.4 and 0.8 seconds."""


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)
    audiences: list[str] | None = None


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool
    denied: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class KubernetesReviews:
    """Sends reviews to one cluster; a ``TokenReviewer`` and an ``AccessReviewer``.

    With ``audiences``, a token must be meant for one of them, and the API server must confirm it:
    an API server that does not know audiences only confirms its own (TokenReview's reference).
    """

    def __init__(self, client: ClusterClient, audiences: Sequence[str] = ()) -> None:
        self._client = client
        self._audiences = tuple(audiences)
        self.asked: Counter[tuple[str, str]] = Counter()
        """Reviews by kind (``token``, ``access``) and outcome (``yes``, ``no``, ``error``)."""
        self.durations = {kind: Durations(SLOW) for kind in ("access", "token")}
        """Seconds by kind, retries included."""

    async def review_token(self, token: str) -> User | None:
        """See :class:`apiservice.auth.tokens.TokenReviewer`."""
        spec: dict[str, Any] = {"token": token}
        if self._audiences:
            spec["audiences"] = list(self._audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        status = (await self._ask("token", _TOKEN_REVIEWS, body, _TokenReview)).status
        user = self._user(status)
        self.asked["token", "yes" if user else "no"] += 1
        return user

    async def review_access(self, user: User, attributes: Attributes) -> AccessDecision:
        """See :class:`apiservice.auth.authorization.AccessReviewer`."""
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": access_spec(user, attributes),
        }
        status = (await self._ask("access", _ACCESS_REVIEWS, body, _AccessReview)).status
        allowed = status.allowed and not status.denied
        self.asked["access", "yes" if allowed else "no"] += 1
        return AccessDecision(allowed, status.reason)

    def _user(self, status: _TokenStatus) -> User | None:
        if not status.authenticated or not status.user.username:
            return None
        if self._audiences and not set(self._audiences).intersection(status.audiences or ()):
            return None
        extra = status.user.extra or {}
        return User(
            name=status.user.username,
            uid=status.user.uid,
            groups=tuple(status.user.groups or ()),
            extra={key: tuple(values) for key, values in extra.items()},
        )

    async def _ask(self, kind: str, path: str, body: Any, answer: type[Any]) -> Any:
        started = perf_counter()
        try:
            async with asyncio.timeout(_TIMEOUT):
                return msgspec.json.decode(await self._post_with_retries(path, body), type=answer)
        except TimeoutError as error:
            self.asked[kind, "error"] += 1
            raise ReviewError(f"POST {path}: no answer within {_TIMEOUT:.0f} s") from error
        except (ClusterAnswerError, msgspec.MsgspecError) as error:
            self.asked[kind, "error"] += 1
            raise ReviewError(_with_hint(path, error)) from error
        finally:
            self.durations[kind].observe(perf_counter() - started)

    async def _post_with_retries(self, path: str, body: Any) -> bytes:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(_TRIES),
            wait=wait_exponential(multiplier=0.2, max=1),
            retry=retry_if_exception(_transient),
            reraise=True,
        )
        return await attempts(call, self._client, "POST", path, body, _TIMEOUT)


def access_spec(user: User, attributes: Attributes) -> Mapping[str, Any]:
    """Return the spec of a SubjectAccessReview without empty fields, as Go's ``omitempty``."""
    spec: dict[str, Any] = {"user": user.name, "uid": user.uid, "groups": list(user.groups)}
    spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if attributes.path:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    else:
        wanted = attributes._asdict()  # ``path`` is empty here
        spec["resourceAttributes"] = {key: text for key, text in wanted.items() if text}
    return {key: value for key, value in spec.items() if value}


def _transient(error: BaseException) -> bool:
    if not isinstance(error, ClusterAnswerError):
        return False
    return error.status in {0, 429} or error.status >= 500


def _with_hint(path: str, error: Exception) -> str:
    if isinstance(error, ClusterAnswerError) and error.status in (401, 403):
        return f"{error}; bind this server's service account to ClusterRole system:auth-delegator"
    if isinstance(error, msgspec.MsgspecError):
        return f"POST {path}: not a response of an API server: {error}"
    return str(error)
