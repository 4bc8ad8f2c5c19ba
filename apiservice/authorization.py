"""Who may do what: a few static rules, then the cluster's own by SubjectAccessReview.

The rules and times are those of ``DelegatingAuthorizationOptions`` in
``k8s.io/apiserver/pkg/server/options/authorization.go``: the privileged group, the health
paths, then a review whose allow and deny are remembered for ten seconds. Without an
answer the request fails with 500: an error is never an allow, and never a remembered deny.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog
from cachetools import TTLCache

from apiservice.errors import Internal
from apiservice.flight import SingleFlight
from apiservice.identity import PRIVILEGED_GROUP, Attributes, Decision, User
from apiservice.tokens import ReviewError

log = structlog.get_logger(__name__)

_ALLOWED = Decision(allowed=True)
_DENIED = Decision(allowed=False)
_LARGEST_REMEMBERED = 10_000
"""Characters of attributes; ``plugin/pkg/authorizer/webhook`` draws the same line."""

_Question = tuple[User, Attributes]


class AccessReviewer(Protocol):
    """Knows the cluster's rules."""

    async def review_access(self, user: User, attributes: Attributes) -> Decision:
        """The cluster's decision. Bounded in time.

        Raises:
            ReviewError: there is no answer; nothing may be concluded from it.
        """


@dataclass(frozen=True, slots=True)
class AuthorizationOptions:
    """The static rules, and how long the cluster's answers are remembered."""

    allow_groups: tuple[str, ...] = (PRIVILEGED_GROUP,)
    allow_users: tuple[str, ...] = ()
    """Users who may do everything: for use without a cluster."""
    allow_paths: tuple[str, ...] = ("/healthz", "/livez", "/readyz")
    """Non-resource paths open to everybody; exact, without what lies below them."""
    allow_ttl: float = 10.0
    """Seconds."""
    deny_ttl: float = 10.0
    """Seconds."""
    size: int = 8192
    """Answers remembered of either kind."""


class Authorization:
    """The :class:`~apiservice.identity.Authorizer` of the server.

    Without a reviewer, as without a cluster, whatever no static rule allows is denied.
    """

    def __init__(
        self,
        reviewer: AccessReviewer | None,
        options: AuthorizationOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        options = options or AuthorizationOptions()
        self._reviewer = reviewer
        self._groups = frozenset(options.allow_groups)
        self._users = frozenset(options.allow_users)
        self._paths = frozenset(options.allow_paths)
        self._allows: TTLCache[_Question, Decision] = TTLCache(
            options.size, options.allow_ttl, clock
        )
        self._denies: TTLCache[_Question, Decision] = TTLCache(
            options.size, options.deny_ttl, clock
        )
        self._flights: SingleFlight[_Question, Decision] = SingleFlight()
        self._failing = False
        self.hits = 0
        """Questions answered from memory."""
        self.misses = 0
        """Questions that the cluster was asked, or that waited for its answer to another."""

    @property
    def remembered(self) -> int:
        """Answers in memory."""
        return len(self._allows) + len(self._denies)

    def cached(self, user: User, attributes: Attributes) -> Decision | None:
        """The decision of a static rule or of memory, else None."""
        if (
            attributes.path in self._paths
            or user.name in self._users
            or not self._groups.isdisjoint(user.groups)
        ):
            return _ALLOWED
        question = (user, attributes)
        try:
            # Half the cost of its ``get``, and the usual case.
            decision: Decision | None = self._allows[question]
        except KeyError:
            decision = self._denies.get(question)
        self.hits += decision is not None
        return decision

    async def authorize(self, user: User, attributes: Attributes) -> Decision:
        """The decision; concurrent equal questions share one review.

        Raises:
            Internal: the cluster could not be asked.
        """
        known = self.cached(user, attributes)
        if known is not None:
            return known
        if self._reviewer is None:
            return _DENIED
        reviewer = self._reviewer
        question = (user, attributes)
        self.misses += 1
        return await self._flights.ask(question, lambda: self._review(reviewer, question))

    async def _review(self, reviewer: AccessReviewer, question: _Question) -> Decision:
        user, attributes = question
        try:
            decision = await reviewer.review_access(user, attributes)
        except ReviewError as error:
            if not self._failing:
                log.warning("access cannot be reviewed: requests get 500", error=str(error))
            self._failing = True
            raise Internal(error) from error
        if self._failing:
            log.info("access is reviewed again")
        self._failing = False
        if sum(map(len, attributes)) <= _LARGEST_REMEMBERED:
            (self._allows if decision.allowed else self._denies)[question] = decision
        return decision
