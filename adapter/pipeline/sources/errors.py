"""The errors of a source's requests."""

from __future__ import annotations

import ssl

import aiohttp

from apiservice.runtime.requesterror import (
    RequestError,
    connect_failure,
    failure_of,
    handshake_failure,
)
from apiservice.runtime.servertrust import certificate_fix

_NOT_TLS = "check whether the server uses HTTPS"


class SourceError(Exception):
    """A request failed. The text explains the failure; ``reason`` is one of a fixed set of words,
    the label for counting."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class CredentialError(SourceError):
    """A credential cannot be used. The text names the file and the fix."""

    def __init__(self, message: str) -> None:
        super().__init__("credential", message)


def connection_error(host: str, port: int, error: OSError) -> SourceError:
    """Return why a connection to a server failed."""
    tls = isinstance(error, ssl.SSLError)
    return _describe_failure((handshake_failure if tls else connect_failure)(host, port, error))


def describe(error: Exception) -> SourceError:
    """Return any failure of a request as a SourceError."""
    if isinstance(error, SourceError):
        return error
    if isinstance(error, RequestError | aiohttp.ClientError | OSError):  # also a time-out
        return _describe_failure(failure_of(error))
    return SourceError("internal", f"{type(error).__name__}: {error}")


def _describe_failure(failure: RequestError) -> SourceError:
    text = str(failure)
    if failure.kind == "tls":
        text = f"{text}; {certificate_fix(text, 'ca_file') or _NOT_TLS}"
    return SourceError(failure.kind, text)
