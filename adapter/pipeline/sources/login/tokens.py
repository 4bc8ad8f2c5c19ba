"""Cache a cloud's tokens: fetch them in a thread, and keep them until they are about to expire.

The vendors' libraries block while they fetch, some of them for minutes. So one thread at a time
fetches, and all queries that need the token wait for that thread. A query that times out does not
start another thread.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from adapter.pipeline.sources.errors import CredentialError
from apiservice.runtime.servertrust import certificate_fix

log = structlog.get_logger(__name__)

_EARLY: Final = 300.0
"""Seconds before its expiry at which a token is renewed; the clouds recommend some minutes."""
_LAST: Final = 10.0
"""Seconds before its expiry at which a token is no longer used: a query takes time."""
_PAUSE: Final = 10.0
"""Seconds between two tries while fetching fails."""
_DOUBT: Final = 300.0
"""Seconds between two tokens discarded because a server rejected them.

The rejection is usually right, and another token does not help.
"""
_SECRET: Final = re.compile(r"[\w\-.+=~]{60,}")
"""Text that may be a token, and is removed from text for logs."""
_REFUSED: Final = re.compile(r"certificate verify failed: [^(]*")


class Token(NamedTuple):
    """An access token."""

    text: str
    expires: float
    """Epoch seconds."""


class CachedToken:
    """One token, renewed before it expires.

    Args:
        origin: who issues it, for messages.
        fetch: gets a new token; it blocks, and may raise any exception.
    """

    def __init__(
        self, origin: str, fetch: Callable[[], Token], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._origin = origin
        self._fetch = fetch
        self._clock = clock
        self._token = Token("", 0.0)
        self._renew_at = 0.0
        self._doubt_from = 0.0
        self._pending: asyncio.Task[None] | None = None
        self._problem = ""

    async def current(self) -> Token:
        """Return a token that does not expire soon.

        Raises:
            CredentialError: there is no such token at present.
        """
        now = self._clock()
        if now >= self._renew_at:
            if self._pending is None or self._pending.done():
                self._pending = asyncio.create_task(self._renew())
            if not self._good(now):
                await asyncio.shield(self._pending)
        if not self._good(self._clock()):
            raise CredentialError(self._problem or f"{self._origin}: the token has expired")
        return self._token

    def note_refusal(self, text: str) -> bool:
        """Note that a server rejected this token: it was revoked, or its keys were rotated.

        Returns:
            Whether :meth:`current` may have another token. That is at most once in five minutes: a
            server that rejects every token must not make the cloud issue one per query.
        """
        if text != self._token.text:
            return True
        now = self._clock()
        if now < self._doubt_from:
            return False
        self._doubt_from = now + _DOUBT
        self._token, self._renew_at = Token("", 0.0), now
        return True

    def _good(self, now: float) -> bool:
        return bool(self._token.text) and now < self._token.expires - _LAST

    async def _renew(self) -> None:
        began = self._clock()
        try:
            token = await asyncio.to_thread(self._fetch)
        except Exception as error:  # the libraries raise many types
            self._note_failure(redact_error(error))
            return
        now, life = self._clock(), token.expires - began
        if life <= _LAST:
            self._note_failure(f"the token expires in {life:.0f} s; check this machine's clock")
            return
        if self._problem:
            log.info("token refresh recovered", origin=self._origin)
        self._problem = ""
        self._token = token
        self._renew_at = max(token.expires - min(_EARLY, life / 2), now + _PAUSE)

    def _note_failure(self, why: str) -> None:
        problem = f"{self._origin}: {why}"
        if not self._problem:
            log.warning("token refresh failed", origin=self._origin, error=problem)
        self._problem = problem
        self._renew_at = self._clock() + _PAUSE


def redact_error(error: BaseException, most: int = 300) -> str:
    """Return an error's text in one line, without anything that may be a token."""
    text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    refused = _REFUSED.search(text)
    if refused:  # behind an address that may fill the line
        text = f"{refused[0].strip()}; {certificate_fix(text, 'REQUESTS_CA_BUNDLE')}"
    return _SECRET.sub("…", text)[:most]
