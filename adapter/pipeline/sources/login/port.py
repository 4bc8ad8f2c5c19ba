"""The port for authentication, and its simple implementations."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.credentials import SecretFile, basic_authorization
from adapter.pipeline.sources.login.extras import command_to_install
from adapter.pipeline.sources.login.tokens import CachedToken


def import_library(module: str, extra: str) -> Any:
    """Import an optional library.

    Raises:
        CredentialError: it is not installed; the text has the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise CredentialError(
            f"needs the Python package {module.partition('.')[0]} ({error}): "
            f"{command_to_install(extra)}"
        ) from error


class Outgoing(NamedTuple):
    """A request that is about to be sent."""

    method: str
    url: str
    """As on the wire, including the query string."""
    headers: Mapping[str, str]
    body: bytes


class Login(Protocol):
    """Authenticates requests."""

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return the headers that authenticate a request.

        Raises:
            CredentialError: there are no credentials at present; a later request may have them.
        """

    def note_refusal(self, shown: Mapping[str, str]) -> bool:
        """Note that the server rejected these headers; return whether new ones may be better.

        The default is for credentials that are read for each request in any case.
        """
        return False


class Anonymous(Login):
    """Sends no credentials."""

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return no headers."""
        return {}


class Basic(Login):
    """A user and a password, or a file with the password."""

    def __init__(self, user: str, password: str, file: Path | None = None) -> None:
        self._user = user
        self._password = password
        self._file = SecretFile(file, "password_file") if file else None

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return the header. The password is read again when its file changes."""
        password = self._file.read() if self._file else self._password
        return {"Authorization": basic_authorization(self._user, password)}


class BearerFile(Login):
    """A token in a file."""

    def __init__(self, file: Path) -> None:
        self._file = SecretFile(file, "bearer_token_file")

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return the header. The token is read again when its file changes."""
        return {"Authorization": f"Bearer {self._file.read()}"}


class Bearer(Login):
    """A cloud's token, cached until it is about to expire, and further headers."""

    def __init__(self, tokens: CachedToken, more: Mapping[str, str] | None = None) -> None:
        self._tokens = tokens
        self._more = dict(more or {})

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return the header with the current token."""
        token = await self._tokens.current()
        return {"Authorization": f"Bearer {token.text}", **self._more}

    def note_refusal(self, shown: Mapping[str, str]) -> bool:
        """See :meth:`.tokens.CachedToken.note_refusal`."""
        return self._tokens.note_refusal(shown["Authorization"].removeprefix("Bearer "))
