"""How a query is let in: what is shown with each request.

``Login``           the port
├── ``Anonymous``   nothing
├── ``Basic``       a user and a password, or a file with one
├── ``BearerFile``  a token in a file
├── ``Bearer``      a token from elsewhere, kept until near its end (:mod:`.tokens`)
└── ``aws``         a signature of each request (:mod:`.awslogin`)
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from adapter.sources.errors import CredentialError
from adapter.sources.login.credentials import SecretFile
from adapter.sources.login.tokens import CachedToken


def required(module: str, extra: str) -> Any:
    """An optional library.

    Raises:
        CredentialError: it is not installed; the text names the extra that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise CredentialError(
            f"needs the Python package {module.partition('.')[0]} ({error}): "
            f"pip install 'gpu-metrics-adapter[{extra}]'"
        ) from error


class Outgoing(NamedTuple):
    """A request that is about to be sent."""

    method: str
    url: str
    """As it will be on the wire, query string included."""
    headers: Mapping[str, str]
    body: bytes


class Login(Protocol):
    """Shows who is asking."""

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Headers to send beside the request's own.

        Raises:
            CredentialError: there is nothing to show now; a later request may have it.
        """

    def refused(self, shown: Mapping[str, str]) -> bool:
        """Take note that what was shown let nobody in; whether there may be better to show."""


class Anonymous:
    """Shows nothing."""

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """No headers."""
        return {}

    def refused(self, shown: Mapping[str, str]) -> bool:
        """There is never more."""
        return False


class Basic:
    """A user and a password."""

    def __init__(self, user: str, password: str, file: Path | None = None) -> None:
        self._user = user
        self._password = password
        self._file = SecretFile(file, "password_file") if file else None

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """The password is read anew when its file changes."""
        password = self._file.read() if self._file else self._password
        return {"Authorization": aiohttp.encode_basic_auth(self._user, password)}

    def refused(self, shown: Mapping[str, str]) -> bool:
        """A file that changed is read by the next query anyhow."""
        return False


class BearerFile:
    """A token in a file."""

    def __init__(self, file: Path) -> None:
        self._file = SecretFile(file, "bearer_token_file")

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """The token is read anew when its file changes."""
        return {"Authorization": _bearer(self._file.read())}

    def refused(self, shown: Mapping[str, str]) -> bool:
        """A file that changed is read by the next query anyhow."""
        return False


class Bearer:
    """A token that somebody else gives out, and what goes with it."""

    def __init__(self, tokens: CachedToken, more: Mapping[str, str] | None = None) -> None:
        self._tokens = tokens
        self._more = dict(more or {})

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """The token of the moment."""
        token = await self._tokens.current()
        return {"Authorization": _bearer(token.text), **self._more}

    def refused(self, shown: Mapping[str, str]) -> bool:
        """See :meth:`.tokens.Tokens.refused`."""
        return self._tokens.refused(shown["Authorization"].removeprefix(_bearer("")))


def _bearer(text: str) -> str:
    return f"Bearer {text}"
