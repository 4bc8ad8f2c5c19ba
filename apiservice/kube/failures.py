"""What went wrong with a request to the API server, in words, and how to fix it."""

from __future__ import annotations

import os
from typing import Any, Final

import aiohttp

NOT_ITS: Final = "the answer is not that of an API server"
"""Of something that answers in another form than the API server does."""


def transport_failure(error: Exception) -> str:
    """Why there was no answer: time, certificate, connection, or what the transport says."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
        return f"certificate verify failed: {getattr(found, 'verify_message', '') or found}"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return f"cannot connect to {error.host}:{error.port}: {os.strerror(error.os_error.errno)}"
    return str(error) or type(error).__name__


def asked(client: Any, error: Exception) -> str:
    """An error of a request in one line: what failed, at which server, and how to fix it."""
    origin = getattr(client, "origin", "")
    hint = fix(getattr(error, "status", 0), str(error))
    return "; ".join(filter(None, (str(error), origin and f"asked {origin}", hint)))


def fix(status: int, text: str) -> str:
    """How to fix what a request failed with; ``status`` is 0 where there was no answer."""
    if status == 0 and NOT_ITS not in text:
        return next((hint for words, hint in _UNANSWERED.items() if words in text), _UNREACHED)
    return _ANSWERED.get(404 if NOT_ITS in text else status, _FAILING)


_ANSWERED: Final = {
    401: "these credentials are not accepted: log in again, or name another context",
    403: "grant this right to the account (RBAC), or name another context",
    404: "check that a Kubernetes API server is at this address, and not a proxy or login page",
}
_FAILING: Final = "try again later, or see the API server's own log"
_UNANSWERED: Final = {
    "certificate has expired": "renew the API server's certificate, and check this machine's clock",
    "certificate": "set certificate-authority to the CA that signed the API server's certificate",
}
_UNREACHED: Final = (
    "check that the API server runs at this address and that this machine reaches it"
)
