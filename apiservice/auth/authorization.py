"""Authorization of a request: a few static rules, then the cluster's SubjectAccessReview.

The rules and times are those of ``DelegatingAuthorizationOptions`` in
``k8s.io/apiserver/pkg/server/options/authorization.go``: the privileged group, the health paths,
then a review whose allow and deny are cached for ten seconds. If the review fails, the request
fails with 500: an error is never an allow, and never a cached deny.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from apiservice.auth.allowance import Allowance
from apiservice.auth.tokens import ReviewError
from apiservice.errors import Internal, TooManyRequests
from apiservice.identity import ANONYMOUS, PRIVILEGED_GROUP, AccessDecision, Attributes, User
from apiservice.runtime.bytecache import ByteCache, Remembering, weight
from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.log import LateLog
from apiservice.runtime.shares import Asker, NoPlaceError, Shares

log = LateLog(__name__)

_ALLOWED = AccessDecision(allowed=True)
_DENIED = AccessDecision(allowed=False)
_LARGEST_REMEMBERED = 10_000
"""Bytes of attributes that are cached; ``plugin/pkg/authorizer/webhook`` has the same bound."""
_RATE, _BURST = 5.0, 50
"""Reviews per second for the anonymous user, and at once. What anonymous clients usually ask for
(health, the version) is allowed by a static rule or cached after one review."""

_AT_ONCE: Final = 32
"""Reviews in progress at once. They are one flow of the API server's Priority and Fairness, so a
tenant with many questions would delay those of all others there."""
_WAITING: Final = 256
"""Questions of one namespace that may wait: a controller asks about all its HPAs at once."""

_OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz"))
"""Non-resource paths open to everyone: exact paths, without what lies below them."""
TTL: Final = 10.0
"""Seconds that a decision is cached."""

_Question = tuple[User, Attributes]


class AccessReviewer(Protocol):
    """Asks the cluster's access rules."""

    async def review_access(self, user: User, attributes: Attributes) -> AccessDecision:
        """Return the cluster's decision. Bounded in time.

        Raises:
            ReviewError: the cluster did not answer; the caller must not conclude anything.
        """


class Authorization(Remembering):
    """The :class:`~apiservice.identity.Authorizer` of the server.

    Without a reviewer (as without a cluster), what no static rule allows is denied.

    Args:
        reviewer: asked about what no static rule allows.
        allow_groups: groups whose users may do everything.
        allow_users: users who may do everything, for use without a cluster.
        ttl: seconds that a decision is cached, allowed or denied.
        limit: bytes of the cached decisions, for allow and for deny.
    """

    def __init__(
        self,
        reviewer: AccessReviewer | None,
        *,
        allow_groups: Iterable[str] = (PRIVILEGED_GROUP,),
        allow_users: Iterable[str] = (),
        ttl: float = TTL,
        limit: int = 8 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reviewer = reviewer
        self._groups = frozenset(allow_groups)
        self._users = frozenset(allow_users)
        self._allows: ByteCache[_Question, AccessDecision] = ByteCache(limit, ttl, clock)
        self._denies: ByteCache[_Question, AccessDecision] = ByteCache(limit, ttl, clock)
        self._anonymous = Allowance(_RATE, _BURST, clock)
        self.places = Shares(_AT_ONCE, waiting=_WAITING)
        """Those of reviews in progress."""
        self._flights: SingleFlight[_Question, AccessDecision] = SingleFlight()
        self._failing = False
        super().__init__(self._allows, self._denies)

    @property
    def refused(self) -> Mapping[str, int]:
        """Questions that were refused without a review, by reason."""
        return {"rate": self._anonymous.refused, **self.places.refused}

    def known_decision(self, user: User, attributes: Attributes) -> AccessDecision | None:
        """Return the decision of a static rule or of the cache, else None."""
        if (
            attributes.path in _OPEN_PATHS
            or user.name in self._users
            or not self._groups.isdisjoint(user.groups)
        ):
            return _ALLOWED
        question = (user, attributes)
        for answers in (self._allows, self._denies):
            try:
                decision = answers[question]
            except KeyError:
                continue
            self.hits += 1
            return decision
        return None

    async def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        """Return the decision. Concurrent equal questions share one review.

        Raises:
            Internal: the cluster could not be asked.
            TooManyRequests: anonymous clients have asked too often, or too many questions of the
                namespace wait.
        """
        decision = self.known_decision(user, attributes)
        if decision is not None:
            return decision
        if self._reviewer is None:
            return _DENIED
        reviewer = self._reviewer
        question = (user, attributes)
        if user.name == ANONYMOUS and not self._anonymous.take(ANONYMOUS):
            raise TooManyRequests(
                f"anonymous clients asked for more than {_RATE:g} access reviews per second"
            )
        self.misses += 1
        return await self._flights.ask(question, lambda: self._review(reviewer, question))

    async def _review(self, reviewer: AccessReviewer, question: _Question) -> AccessDecision:
        user, attributes = question
        try:
            async with self.places.place(Asker(attributes.namespace, user.name)):
                decision = await reviewer.review_access(user, attributes)
        except NoPlaceError as error:
            raise TooManyRequests(f"access reviews: {error}") from None
        except ReviewError as error:
            if not self._failing:
                log.warning("SubjectAccessReview is failing; requests get 500", error=str(error))
            self._failing = True
            raise Internal(error) from error
        if self._failing:
            log.info("SubjectAccessReview recovered")
        self._failing = False
        size = weight(attributes)
        if size <= _LARGEST_REMEMBERED:
            answers = self._allows if decision.allowed else self._denies
            answers.put(question, decision, size + user.bytes + weight(decision.reason))
        return decision
