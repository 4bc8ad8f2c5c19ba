"""Read pages of pods and Services: through the API server's proxy, or directly inside the cluster.

In a pod of the cluster no right to ``pods/proxy`` is needed, which would allow requests to every
pod. Outside, the API server forwards the request.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec

from adapter.client.access import Api
from adapter.client.errors import ClientError

SECONDS: Final = 10.0
_PROXY_ERROR: Final = "error trying to reach service"
_TLS: Final = ("HTTPS server", "malformed HTTP response", "EOF", "disconnected", "HTTP/0.9")
"""What a client of plain HTTP sees of a port with TLS."""


class Fetched(NamedTuple):
    """What one address answered."""

    status: int
    """HTTP status; 0 without a response."""
    body: bytes
    complete: bool = True
    error: str = ""
    """Why there is no response."""


class Place(NamedTuple):
    """A port of a pod or Service."""

    kind: str
    """``pods`` or ``services``."""
    namespace: str
    name: str
    url: str
    """Where it is inside the cluster."""

    @property
    def proxy(self) -> str:
        """The path of the API server's proxy."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        scheme = "https:" if parts.scheme == "https" else ""
        query = f"?{parts.query}" if parts.query else ""
        where = f"/api/v1/namespaces/{self.namespace}/{self.kind}/{scheme}{self.name}:{port}"
        return f"{where}/proxy{parts.path}{query}"

    @property
    def strays(self) -> bool:
        """Whether the path leads out of the proxy: pods name it, and clients resolve ``..``."""
        return ".." in unquote(urlsplit(self.url).path).split("/")

    @property
    def brief(self) -> str:
        """Port and path, for messages."""
        parts = urlsplit(self.url)
        return f":{parts.port}{parts.path}" if parts.port else parts.path

    @property
    def secure(self) -> Place:
        """The same port with TLS."""
        return self._replace(url="https" + self.url.removeprefix("http"))


class Fetcher(Protocol):
    """Reads from places inside the cluster."""

    async def fetch(self, place: Place, most: int) -> Fetched:
        """Return what a place answers; raises ClientError if the caller lacks the right."""


class ProxyFetcher:
    """Reads through the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def fetch(self, place: Place, most: int) -> Fetched:
        """See :class:`Fetcher`."""
        if place.strays:
            return Fetched(0, b"", error="its path has .., and is not requested")
        try:
            found = await self._api.page(place.proxy, most)
        except ClientError as error:
            return Fetched(0, b"", error=error.brief)
        if found.status == 403 and b'"Forbidden"' in found.body[:4096]:
            raise ClientError(f"GET {place.proxy}: 403 {_message(found.body)}", 403)
        text = _message(found.body) if found.status >= 400 else ""
        if _PROXY_ERROR in text:
            return Fetched(0, b"", error=text.partition(": ")[2] or text)
        return Fetched(found.status, found.body, found.complete)


class DirectFetcher:
    """Reads addresses inside the cluster, without credentials unless they are given."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def fetch(self, place: Place, most: int) -> Fetched:
        """See :class:`Fetcher`."""
        return await self.read(place.url, most)

    async def read(
        self,
        url: str,
        most: int,
        *,
        token: str = "",
        context: ssl.SSLContext | None = None,
        host: str = "",
    ) -> Fetched:
        """Read a URL. Without a context, no certificate is checked and no token may be sent."""
        headers = {"Authorization": f"Bearer {token}"} if token and context else {}
        try:
            async with self._session.get(
                url,
                headers=headers,
                ssl=context or False,
                server_hostname=host or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=SECONDS),
            ) as response:
                body = bytearray()
                async for chunk in response.content.iter_chunked(1 << 16):
                    body += chunk
                    if len(body) > most:
                        return Fetched(response.status, bytes(body[:most]), complete=False)
                return Fetched(response.status, bytes(body))
        except TimeoutError:
            return Fetched(0, b"", error="no answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Fetched(0, b"", error=" ".join(str(error).split()) or type(error).__name__)


@asynccontextmanager
async def direct() -> AsyncIterator[DirectFetcher]:
    """Yield a fetcher for addresses that this process reaches."""
    async with aiohttp.ClientSession(auto_decompress=True, trust_env=False) as session:
        yield DirectFetcher(session)


async def speaks_tls(fetcher: Fetcher, place: Place, answer: Fetched) -> bool:
    """Return whether a port that failed over plain HTTP answers with TLS."""
    said = answer.error or answer.body[:512].decode("utf-8", "replace")
    if answer.status not in (0, 400) or not any(word in said for word in _TLS):
        return False
    return (await fetcher.fetch(place.secure, 1 << 12)).status > 0


class _Status(msgspec.Struct):
    message: str = ""


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Status).message
    except msgspec.MsgspecError:
        return " ".join(body[:200].decode("utf-8", "replace").split())
