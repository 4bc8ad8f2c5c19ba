"""Send one GET to a delegate, bounded in bytes, and check the form of what it answers.

Nothing of the client's request is forwarded but its path and its selectors. Redirects are not
followed: the token would go where the delegate chooses.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from apiservice.delegate.credential import Credential
from apiservice.delegate.failure import DelegateFailure
from apiservice.delegate.options import DelegateOptions
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import certificate_fix
from apiservice.wire.delegationheader import DELEGATED

if TYPE_CHECKING:
    import httpx

_CONNECT: Final = 3.0
"""Seconds for a connection and its TLS handshake."""


class Reply(NamedTuple):
    """An answer with any status but a redirect."""

    status: int
    body: bytes


class Transport(Protocol):
    """Sends requests to one delegate."""

    async def get(self, path: str, limit: int) -> Reply:
        """Return the answer to a GET of an encoded path.

        Raises:
            DelegateFailure: there was none, or it has another form.
        """

    async def close(self) -> None:
        """Close the connections."""


class HttpTransport:
    """Sends requests over TLS, with a bearer token.

    Args:
        tls: returns the TLS context for new connections; raises OSError or ValueError.
        agent: the ``User-Agent``.
    """

    def __init__(
        self,
        options: DelegateOptions,
        tls: Callable[[], ssl.SSLContext],
        credential: Credential,
        agent: str,
    ) -> None:
        # Here, so that a process without a delegate does not load httpx.
        from apiservice.runtime.httpclient import HttpClient  # noqa: PLC0415

        self._options = options
        self._credential = credential
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": agent,
            DELEGATED: "1",
        }
        connections = options.at_once + 2
        self._http = HttpClient(tls, headers, connect=_CONNECT, connections=connections, idle=60)

    async def get(self, path: str, limit: int) -> Reply:
        """See :class:`Transport`. A 401 is repeated once if there is another token."""
        token = await self._credential.token()
        reply = await self._send(path, limit, token)
        if reply.status == 401 and self._credential.note_refusal(token):
            reply = await self._send(path, limit, await self._credential.token())
        return reply

    async def close(self) -> None:
        """See :class:`Transport`."""
        await self._http.close()

    async def _send(self, path: str, limit: int, token: str) -> Reply:
        try:
            async with self._http.send(
                "GET",
                self._options.url + path,
                headers={"Authorization": f"Bearer {token}"},
                server_name=self._options.server_name or "",
            ) as response:
                return await _read(response, limit)
        except RequestError as error:
            text = "no connection in time" if error.kind == "timeout" else str(error)
            text = text.replace(token, "…")
            raise DelegateFailure(_OUTCOMES[error.kind], _with_fix(text)) from error
        except (OSError, ValueError) as error:  # of a TLS file
            raise DelegateFailure("unreachable", _with_fix(str(error))) from error


_OUTCOMES: Final[Mapping[str, str]] = {
    "timeout": "timeout",
    "tls": "untrusted",
    "connect": "unreachable",
    "truncated": "invalid",
    "protocol": "invalid",
}
"""Kind of a failed request -> its outcome."""


def _with_fix(text: str) -> str:
    return "; ".join(filter(None, (text, certificate_fix(text, "its ca_file"))))


async def _read(response: httpx.Response, limit: int) -> Reply:
    status = response.status_code
    if 300 <= status <= 399:
        raise DelegateFailure("redirect", f"status {status}: a redirect is not followed")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or response.headers.get("Content-Encoding"):
        text = f"status {status} with {kind[:80] or 'no Content-Type'}, not with JSON"
        raise DelegateFailure("invalid", text)
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > limit:
                raise DelegateFailure("too_large", f"the answer is longer than {limit} bytes")
        return Reply(status, bytes(body))
    finally:
        body.clear()  # the traceback of a failure keeps this frame
