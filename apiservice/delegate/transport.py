"""Send one GET to a delegate, bounded in bytes, and check the form of what it answers.

Nothing of the client's request is forwarded but its path and its selectors. Redirects are not
followed: the token would go where the delegate chooses.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import aiohttp
from yarl import URL

from apiservice.delegate.credential import Credential
from apiservice.delegate.failure import DelegateFailure
from apiservice.delegate.options import DelegateOptions
from apiservice.kube.failures import transport_failure
from apiservice.runtime.servertrust import certificate_fix
from apiservice.wire.delegated import DELEGATED

_CHUNK: Final = 1 << 16
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
        self._options = options
        self._tls = tls
        self._credential = credential
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": agent,
            DELEGATED: "1",
        }
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, limit: int) -> Reply:
        """See :class:`Transport`. A 401 is repeated once if there is another token."""
        token = await self._credential.token()
        reply = await self._send(path, limit, token)
        if reply.status == 401 and self._credential.refused(token):
            reply = await self._send(path, limit, await self._credential.token())
        return reply

    async def close(self) -> None:
        """See :class:`Transport`."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, path: str, limit: int, token: str) -> Reply:
        try:
            async with self._open().get(
                URL(self._options.url + path, encoded=True),
                headers={**self._headers, "Authorization": f"Bearer {token}"},
                ssl=self._tls(),
                server_hostname=self._options.server_name,
                allow_redirects=False,
            ) as response:
                return await _read(response, limit)
        except TimeoutError as error:
            raise DelegateFailure("timeout", "no connection in time") from error
        except aiohttp.ClientPayloadError as error:
            raise DelegateFailure("invalid", "the answer is incomplete") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            text = transport_failure(error).replace(token, "…")
            hint = certificate_fix(text, "its ca_file")
            raise DelegateFailure(_outcome(error), "; ".join(filter(None, (text, hint)))) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._options.at_once + 2, keepalive_timeout=60
                ),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=_CONNECT),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


def _outcome(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "untrusted"
    return "invalid" if isinstance(error, aiohttp.ClientResponseError) else "unreachable"


async def _read(response: aiohttp.ClientResponse, limit: int) -> Reply:
    if 300 <= response.status <= 399:
        response.close()
        raise DelegateFailure("redirect", f"status {response.status}: a redirect is not followed")
    if response.content_type != "application/json" or response.headers.get("Content-Encoding"):
        response.close()
        raise DelegateFailure(
            "invalid", f"status {response.status} with {response.content_type[:80]}, not with JSON"
        )
    body = bytearray()
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            body += chunk
            if len(body) > limit:
                response.close()
                raise DelegateFailure("too_large", f"the answer is longer than {limit} bytes")
        return Reply(response.status, bytes(body))
    finally:
        body.clear()  # the traceback of a failure keeps this frame
