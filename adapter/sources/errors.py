"""The errors of a source's requests."""

from __future__ import annotations

import os
import ssl

import aiohttp

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


def _handshake(host: str, port: int | None, error: OSError) -> SourceError:
    hint = certificate_fix(str(error), "ca_file") or _NOT_TLS
    return SourceError("tls", f"TLS handshake with {host}:{port} failed: {error}; {hint}")


def unreachable(host: str, port: int, error: OSError) -> SourceError:
    """Return why a connection to a server failed."""
    if isinstance(error, ssl.SSLError):
        return _handshake(host, port, error)
    said = os.strerror(error.errno) if error.errno and error.errno > 0 else error
    return SourceError("connect", f"cannot connect to {host}:{port}: {said}")


def describe(error: Exception) -> SourceError:  # noqa: PLR0911 - a table of cases
    """Return any failure of a request as a SourceError."""
    match error:
        case SourceError():
            return error
        case TimeoutError():
            return SourceError("timeout", "no answer in time")
        # The texts of these two contain the TLS context's address in memory.
        case aiohttp.ClientSSLError() as failed:
            return _handshake(failed.host, failed.port, failed.os_error)
        case aiohttp.ClientConnectorError() as failed:
            said = failed.os_error.strerror or failed.os_error
            return SourceError("connect", f"cannot connect to {failed.host}:{failed.port}: {said}")
        case aiohttp.ServerDisconnectedError():
            return SourceError("connect", str(error))
        # Its text contains the URL, and with method GET every parameter in it.
        case aiohttp.ClientResponseError() as failed:
            return SourceError("protocol", f"{type(error).__name__}: {failed.message}")
        case aiohttp.ClientError() | OSError():
            return SourceError("protocol", f"{type(error).__name__}: {error}")
    return SourceError("internal", f"{type(error).__name__}: {error}")
