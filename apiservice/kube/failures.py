"""One-line texts for failed requests to the API server: the cause and the fix."""

from __future__ import annotations

from typing import Any, Final

import aiohttp

from apiservice.runtime.requesterror import connect_failure
from apiservice.runtime.servertrust import certificate_fix

NOT_AN_API_SERVER: Final = "this is not a response of a Kubernetes API server"
"""The cause when something answers in another form than the API server."""
TOO_LONG: Final = "the answer is longer than"
"""The cause when an answer exceeds what is read of it."""


class ClusterError(Exception):
    """The cluster cannot be reached; the message names the file and the fix."""


class NoKubeconfigError(ClusterError):
    """This process does not run in a pod, and there is no kubeconfig."""


def transport_failure(error: Exception) -> str:
    """Return why there was no response: timeout, certificate, connection, or the error's text."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = error.certificate_error
        return f"certificate verify failed: {getattr(reason, 'verify_message', '') or reason}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(connect_failure(error.host, error.port, error.os_error))
    return str(error) or type(error).__name__


def describe_failure(client: Any, error: Exception) -> str:
    """Describe a failed request in one line: what failed, at which server, and the fix."""
    origin = getattr(client, "origin", "")
    hint = fix(getattr(error, "status", 0), str(error))
    return "; ".join(filter(None, (str(error), origin and f"server: {origin}", hint)))


def fix(status: int, text: str) -> str:
    """Return the fix for a failed request; ``status`` is 0 without a response."""
    if status == 0 and NOT_AN_API_SERVER not in text:
        if TOO_LONG in text:
            return "read fewer objects: name a namespace, or see which objects are so large"
        return certificate_fix(text, "certificate-authority") or _UNREACHED
    return _ANSWERED.get(404 if NOT_AN_API_SERVER in text else status, _FAILING)


_ANSWERED: Final = {
    401: "the server does not accept these credentials: log in again, or name another context",
    403: "grant this right to the account (RBAC), or name another context",
    404: "check that a Kubernetes API server is at this address, and not a proxy or login page",
}
_FAILING: Final = "try again later, or see the API server's own log"
_UNREACHED: Final = (
    "check that the API server runs at this address and that this machine reaches it"
)
