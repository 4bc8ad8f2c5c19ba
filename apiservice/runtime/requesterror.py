"""Why a request that this process sent got no complete answer: one table for all its clients."""

from __future__ import annotations

import os
from typing import Final, Literal

import aiohttp

FailureKind = Literal["timeout", "tls", "connect", "truncated", "protocol"]

NO_ANSWER: Final = "no answer in time"


class RequestError(Exception):
    """There is no complete answer. The text is one line, and holds neither the URL nor headers."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(" ".join(text.split()))
        self.kind = kind


def failure_of(error: BaseException) -> RequestError:  # noqa: PLR0911 - a table of cases
    """Return an error of a connection as a failure.

    Args:
        error: of aiohttp, or of the system.
    """
    match error:
        case RequestError():
            return error
        case TimeoutError():
            return RequestError("timeout", NO_ANSWER)
        # The texts of these two contain the TLS context's address in memory.
        case aiohttp.ClientSSLError() as failed:
            return handshake_failure(failed.host, failed.port, failed.os_error)
        case aiohttp.ClientConnectorError() as failed:
            return connect_failure(failed.host, failed.port, failed.os_error)
        case aiohttp.ServerDisconnectedError():
            return RequestError("connect", str(error))
        case aiohttp.ClientPayloadError():
            return RequestError("truncated", "the answer is incomplete")
        # Its text contains the URL, and with method GET every parameter in it.
        case aiohttp.ClientResponseError() as failed:
            return RequestError("protocol", f"{type(error).__name__}: {failed.message}")
    return RequestError("protocol", f"{type(error).__name__}: {error}")


def handshake_failure(host: str, port: int | None, error: OSError) -> RequestError:
    """Return the failure of a TLS handshake."""
    return RequestError("tls", f"TLS handshake with {host}:{port} failed: {error}")


def connect_failure(host: str, port: int | None, error: OSError) -> RequestError:
    """Return the failure of a connection."""
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
    return RequestError("connect", f"cannot connect to {host}:{port}: {why}")
