"""Read pages of pods and Services: through the API server's proxy, or directly inside the cluster.

In a pod of the cluster no right to ``pods/proxy`` is needed, which would allow requests to every
pod. Outside, the API server forwards the request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from adapter.pipeline.sources.login.credentials import TlsClient
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from apiservice.kube.client import BoundedAnswer
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.runtime.requesterror import RequestError, failure_of

if TYPE_CHECKING:
    import httpx

    from apiservice.runtime.httpclient import HttpClient

SECONDS: Final = 10.0
_HEADERS: Final = {"User-Agent": "gpu-metrics-adapter", "Accept-Encoding": "identity"}
_PROXY_ERROR: Final = "error trying to reach service"
_SHOWN: Final = 300
"""Characters of a Status's message that are kept."""
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
    unread: bool = False
    """The request did not reach the pod: nothing is known of its port."""


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
            return Fetched(0, b"", error="its path has .., and is not requested", unread=True)
        try:
            answer = await self._api.page(place.proxy, most)
        except ClientError as error:
            # The API server answers other requests, so a late answer is the pod's.
            return Fetched(0, b"", error=error.brief, unread="in time" not in error.brief)
        message = _status(answer)
        if message is None:
            return Fetched(answer.status, answer.body, answer.complete)
        if answer.status == 403 and await self._may_not(place):
            raise ClientError(f"GET {place.proxy}: 403 {message}", 403)
        if answer.status == 503 and message.startswith(_PROXY_ERROR):
            return Fetched(0, b"", error=message.partition(": ")[2] or message)
        text = f"the API server does not forward the request: {answer.status} {message}"
        return Fetched(0, b"", error=text, unread=True)

    async def _may_not(self, place: Place) -> bool:
        """Return whether the caller lacks the right; a pod can answer with any 403."""
        try:
            return not await self._api.can("get", "", f"{place.kind}/proxy", place.namespace)
        except ClientError:
            return True


class DirectFetcher:
    """Reads addresses inside the cluster, without credentials unless they are given."""

    def __init__(self) -> None:
        self._unchecked = TlsClient(verify=False).current()
        self._clients: dict[ssl.SSLContext, HttpClient] = {}

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()

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
        client = self._client(context or self._unchecked)
        try:
            async with (
                asyncio.timeout(SECONDS),
                client.send("GET", url, headers=headers, server_name=host) as response,
            ):
                return await _read_bounded(response, most)
        except (RequestError, OSError, ValueError) as error:
            return Fetched(0, b"", error=str(failure_of(error)))

    def _client(self, context: ssl.SSLContext) -> HttpClient:
        client = self._clients.get(context)
        if client is None:
            # Here: a run outside the cluster sends nothing itself.
            from apiservice.runtime.httpclient import HttpClient  # noqa: PLC0415

            client = self._clients[context] = HttpClient(lambda: context, _HEADERS)
        return client


async def _read_bounded(response: httpx.Response, most: int) -> Fetched:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        text = f"Content-Encoding {encoding[:40]!r} was not requested"
        return Fetched(response.status_code, b"", error=text)
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > most:
            return Fetched(response.status_code, bytes(body[:most]), complete=False)
    return Fetched(response.status_code, bytes(body))


@asynccontextmanager
async def direct_fetcher() -> AsyncIterator[DirectFetcher]:
    """Yield a fetcher for addresses that this process reaches."""
    fetcher = DirectFetcher()
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def speaks_tls(fetcher: Fetcher, place: Place, answer: Fetched) -> bool:
    """Return whether a port that failed over plain HTTP answers with TLS."""
    text = answer.error or answer.body[:512].decode("utf-8", "replace")
    if answer.status not in (0, 400) or not any(word in text for word in _TLS):
        return False
    return (await fetcher.fetch(place.secure, 1 << 12)).status > 0


class _Status(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    code: int = 0
    message: str = ""


def _status(answer: BoundedAnswer) -> str | None:
    """Return the message of a Status, by which the API server itself answers; None for others."""
    if answer.status < 400:
        return None
    try:
        status = msgspec.json.decode(answer.body, type=_Status)
    except UNREADABLE:
        return None
    ours = (status.kind, status.api_version, status.code) == ("Status", "v1", answer.status)
    return " ".join(status.message.split())[:_SHOWN] if ours else None
