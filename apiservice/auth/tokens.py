"""Bearer tokens: checked by a TokenReview, and the result cached for ten seconds.

Times and bounds are those of ``k8s.io/apiserver/pkg/authentication/token/cache`` as the delegating
options set it up. An error is not cached, there or here.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from apiservice.auth.allowance import Allowance
from apiservice.errors import TooManyRequests
from apiservice.identity import User
from apiservice.runtime.bytecache import ByteCache, Remembering
from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.log import LateLog

log = LateLog(__name__)

_MAX_TOKEN = 16 << 10
"""Bytes; a service account's token has about 1,000."""
_RATE, _BURST = 10.0, 50
"""Unknown tokens per second and address, and at once. A client sends one token for minutes."""


TTL: Final = 10.0
"""Seconds that a result is cached."""


class ReviewError(Exception):
    """A review failed; the message names the server that did not answer, and the cause."""


class TokenReviewer(Protocol):
    """Checks tokens."""

    async def review_token(self, token: str) -> User | None:
        """Return the token's user, or None if the token is not valid. Bounded in time.

        Raises:
            ReviewError: the cluster did not answer; the caller must not conclude anything.
        """


class ReviewedTokens(Remembering):
    """A reviewer's results, cached. Concurrent requests with one token share one review.

    Tokens are kept only as keyed hashes: a memory dump of this process does not contain them.

    Args:
        ttl: seconds that a result is cached, for valid and invalid tokens alike.
        limit: bytes of the cached results.
    """

    def __init__(
        self,
        reviewer: TokenReviewer,
        ttl: float = TTL,
        limit: int = 4 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reviewer = reviewer
        self._answers: ByteCache[bytes, User | None] = ByteCache(limit, ttl, clock)
        self._allowance = Allowance(_RATE, _BURST, clock)
        self._flights: SingleFlight[bytes, User | None] = SingleFlight()
        self._pepper = secrets.token_bytes(32)
        self._failing = False
        super().__init__(self._answers)

    @property
    def refused(self) -> Mapping[str, int]:
        """Tokens refused without a review, by reason: their sender sent too many (``rate``)."""
        return {"rate": self._allowance.refused}

    async def user(self, token: str, sender: str = "") -> User | None:
        """Return the token's user, or None if the token is not valid.

        Args:
            sender: the client's address. Each has its own allowance of unknown tokens.

        Raises:
            ReviewError: the cluster did not answer.
            TooManyRequests: the sender's allowance is used up.
        """
        raw = token.encode("utf-8", "surrogateescape")
        if len(raw) > _MAX_TOKEN:
            return None
        key = hashlib.blake2b(raw, key=self._pepper, digest_size=32).digest()
        try:
            user = self._answers[key]
        except KeyError:
            if not self._allowance.take(sender):
                raise TooManyRequests(
                    f"this address sent more than {_RATE:g} different bearer tokens per second"
                ) from None
            self.misses += 1
            return await self._flights.ask(key, lambda: self._review(key, token))
        self.hits += 1
        return user

    async def _review(self, key: bytes, token: str) -> User | None:
        try:
            user = await self._reviewer.review_token(token)
        except ReviewError as error:
            if not self._failing:
                log.warning(
                    "TokenReview is failing; requests with bearer tokens get 401", error=str(error)
                )
            self._failing = True
            raise
        if self._failing:
            log.info("TokenReview recovered")
        self._failing = False
        self._answers.put(key, user, len(key) + (user.bytes if user is not None else 0))
        return user
