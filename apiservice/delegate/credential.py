"""The bearer token by which this server identifies itself to delegates.

A delegate can keep the token and use it until it expires. So it is a token of a service account
that may read metrics and nothing else, and it is valid for minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog

from apiservice.delegate.failure import DelegateFailure
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.flight import SingleFlight

log = structlog.get_logger(__name__)

SECONDS: Final = 600
"""The validity that is requested: the least that TokenRequest allows."""
_RENEW: Final = 0.8
"""The part of its validity after which a token is renewed."""
_PAUSE: Final = 10.0
"""Seconds between two requests for a token."""


class Credential(Protocol):
    """Supplies a token."""

    async def token(self) -> str:
        """Return the current token.

        Raises:
            DelegateFailure: there is none.
        """

    def note_refusal(self, token: str) -> bool:
        """Record that a delegate answered 401; return whether another token can be tried."""


class TokenFile:
    """A token in a file, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: Stamp | None = None
        self._text = ""

    async def token(self) -> str:
        """See :class:`Credential`."""
        file_stamp = stamp((self._path,))
        if file_stamp != self._seen or not self._text:
            try:
                text = self._path.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise DelegateFailure("no_token", f"{self._path} cannot be read: {why}") from error
            if not text or not text.isprintable() or " " in text:
                raise DelegateFailure("no_token", f"{self._path} does not hold a token of one line")
            self._seen, self._text = file_stamp, text
        return self._text

    def note_refusal(self, token: str) -> bool:
        """See :class:`Credential`."""
        return stamp((self._path,)) != self._seen


class _Spec(msgspec.Struct, rename="camel"):
    expiration_seconds: int = SECONDS


class _Granted(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _Granted
    spec: _Spec = msgspec.field(default_factory=_Spec)


class RequestedToken:
    """A service account's token from the API server's TokenRequest, renewed before it expires.

    Args:
        ask: sends the TokenRequest and returns the response's body; raises any exception.
        account: ``NAMESPACE/NAME`` of the service account, for messages.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[bytes]],
        account: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._account = account
        self._clock = clock
        self._token = ""
        self._due = self._expires = 0.0
        self._asked = -_PAUSE
        self._problem = ""
        self._flights: SingleFlight[str, None] = SingleFlight()
        self._renewal: asyncio.Task[None] | None = None

    async def token(self) -> str:
        """See :class:`Credential`."""
        now = self._clock()
        if not self._token or now >= self._expires:
            if not self._problem or now - self._asked >= _PAUSE:
                await self._flights.ask("", self._renew)
            if not self._token or now >= self._expires:
                raise DelegateFailure("no_token", self._problem)
        elif now >= self._due and now - self._asked >= _PAUSE:
            # The token is still valid, so no request waits for its renewal.
            self._renewal = asyncio.ensure_future(self._flights.ask("", self._renew))
        return self._token

    def note_refusal(self, token: str) -> bool:
        """See :class:`Credential`."""
        if token != self._token:
            return True
        if self._clock() - self._asked < _PAUSE:
            return False
        self._token = ""
        return True

    async def _renew(self) -> None:
        self._asked = self._clock()
        try:
            answer = msgspec.json.decode(await self._ask(), type=_TokenRequest)
        except Exception as error:
            problem = (
                f"no token of service account {self._account}: {error}; the adapter needs the "
                "right to create serviceaccounts/token of it"
            )
            if problem != self._problem:
                log.warning("no token for delegates", account=self._account, error=str(error))
            self._problem = problem
            return
        if self._problem:
            log.info("token for delegates obtained", account=self._account)
        life = max(1, min(answer.spec.expiration_seconds, 86_400))
        self._problem, self._token = "", answer.status.token
        self._due, self._expires = self._asked + life * _RENEW, self._asked + life


def token_request() -> dict[str, Any]:
    """Return the body of a TokenRequest. Its audience is the API server's, as delegates expect."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": SECONDS},
    }
