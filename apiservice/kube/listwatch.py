"""The HTTP requests that list and watch one collection of the Kubernetes API.

The client library's own Watch is not used. It turns every object into Python models (over 100 KB
for a pod), gives up on a second 410, and cannot distinguish a dead connection from a quiet one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import aiohttp
import msgspec

from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.failures import NOT_AN_API_SERVER

_SLICE: Final = 0.005
"""Seconds of the event loop that a burst of events may take before other tasks run."""


class WatchError(Exception):
    """The collection could not be listed or watched; the text names the path and the fix."""


class ExpiredError(WatchError):
    """The server no longer keeps the resource version (410). The caller must list again."""


class GarbledError(WatchError):
    """The response is not a list or event, so something may be lost. The caller must list again."""


class RefusedError(WatchError):
    """A response with a status other than 200."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


UNDECODABLE = (msgspec.MsgspecError, ValueError)


@dataclass(frozen=True, slots=True)
class ListWatchOptions:
    """Limits of one collection's requests; durations in seconds."""

    page_size: int = 500
    """Objects per page of a list, as in client-go."""
    request_timeout: float = 60.0
    """Seconds for one page of a list, and for connecting."""
    watch_seconds: float = 60.0
    """``timeoutSeconds`` of one watch, so that a quiet collection also shows that it is alive. A
    tenth of it is random so that replicas drift apart. Bookmarks do not serve for that:
    kube-apiserver sends none until the collection has changed since the server's own start."""
    grace: float = 30.0
    """Seconds without a byte beyond ``watch_seconds`` after which the connection counts as dead."""
    max_page_bytes: int = 256 << 20
    """Bytes of a page. 500 objects of etcd's largest size are 750 MB; pages of pods are 5 MB."""
    max_event_bytes: int = 16 << 20
    """Bytes of an event. etcd refuses objects above 1.5 MB; this bounds a stream without lines."""

    @property
    def longest_watch(self) -> float:
        """Seconds after which a watch is given up although bytes still arrive: the server should
        have ended it long before."""
        return self.request_timeout + self.watch_seconds + self.grace


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: _Meta


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0


_page = msgspec.json.Decoder(_Page)
_event = msgspec.json.Decoder(_Event)
_versioned = msgspec.json.Decoder(_Versioned)
_status = msgspec.json.Decoder(_Status)


class ListPage(NamedTuple):
    """One page of a list."""

    items: list[msgspec.Raw]
    version: str
    """The list's resourceVersion, from which a watch starts."""
    token: str
    """The token of the next page; empty on the last page."""


class WatchEvent(NamedTuple):
    """One event of a watch; ``type`` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: msgspec.Raw
    version: str


class ListWatch:
    """Requests one collection. Raises WatchError, or the transport's errors."""

    def __init__(
        self,
        client: ClusterClient,
        path: str,
        *,
        field_selector: str,
        label_selector: str,
        options: ListWatchOptions,
    ) -> None:
        self._client = client
        self._path = path
        self._options = options
        self._selectors = [
            (key, value)
            for key, value in (("fieldSelector", field_selector), ("labelSelector", label_selector))
            if value
        ]

    async def page(self, token: str) -> ListPage:
        """Return one page of the list from ``token`` on; empty for the first."""
        query = [("limit", str(self._options.page_size))]
        if token:
            query.append(("continue", token))
        limits = aiohttp.ClientTimeout(total=self._options.request_timeout)
        # The client's own limit does not apply on a connection with unsolicited bytes.
        async with asyncio.timeout(self._options.request_timeout):
            response = await self._get(query, limits)
            try:
                body = await _body(response, self._path, self._options.max_page_bytes)
            finally:
                response.close()
        await asyncio.sleep(0)  # to read and to split a page takes 2 ms each
        try:
            page = _page.decode(body)
        except UNDECODABLE as error:
            raise GarbledError(f"GET {self._path}: {NOT_AN_API_SERVER}: {error}") from error
        return ListPage(page.items or [], page.metadata.resourceVersion, page.metadata.continue_)

    async def watch(self, version: str, heard: Callable[[], None]) -> AsyncIterator[WatchEvent]:
        """Yield the events after ``version`` until the server ends the watch normally.

        ``heard`` is called each time the server shows that it is alive.
        """
        spread = random.uniform(0.9, 1.0)  # noqa: S311 - no secret: keeps replicas apart
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(max(1, int(self._options.watch_seconds * spread)))),
        ]
        limits = aiohttp.ClientTimeout(
            total=None,
            sock_connect=self._options.request_timeout,
            sock_read=self._options.watch_seconds + self._options.grace,
        )
        async with asyncio.timeout(self._options.watch_seconds + self._options.grace):
            response = await self._get(query, limits)
        try:
            heard()
            async for line in _lines(response, self._options.max_event_bytes, heard):
                yield self._event(line)
        finally:
            response.close()

    def _event(self, line: bytes) -> WatchEvent:
        try:
            event = _event.decode(line)
            if event.type == "ERROR":
                raise _failure(self._path, _status.decode(event.object))
            version = _versioned.decode(event.object).metadata.resourceVersion
        except UNDECODABLE as error:
            raise GarbledError(
                f"GET {self._path}: not a watch event: {line[:80]!r}: {error}"
            ) from error
        return WatchEvent(event.type, event.object, version)

    async def _get(
        self, query: list[tuple[str, str]], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        response = await self._client.request(
            "GET", self._path, limits, query=[*self._selectors, *query]
        )
        if response.status == 200:
            return response
        try:
            text = await response.content.read(1 << 16)
        finally:
            response.close()
        raise _refusal(self._path, response.status, text)


async def _body(response: aiohttp.ClientResponse, path: str, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise WatchError(f"GET {path}: a page of the list is larger than {limit} bytes")
    return bytes(body)


async def _lines(
    response: aiohttp.ClientResponse, limit: int, heard: Callable[[], None]
) -> AsyncIterator[bytes]:
    """Yield the stream's complete lines, with turns for other tasks. Blank lines are dropped.

    A last line without its end was cut and is dropped.

    Raises:
        GarbledError: more than ``limit`` bytes came without an event.
    """
    loop = asyncio.get_running_loop()
    line, without, since = bytearray(), 0, loop.time()
    async for chunk in response.content.iter_any():
        heard()
        *whole, tail = chunk.split(b"\n")
        without += len(chunk)
        for part in whole:
            line += part
            if line.strip():
                without = 0
                yield bytes(line)
            line.clear()
            if loop.time() - since >= _SLICE:
                await asyncio.sleep(0)
                since = loop.time()
        line += tail
        if without > limit:
            raise GarbledError(f"more than {limit} bytes of a watch without an event")


def _refusal(path: str, code: int, body: bytes) -> WatchError:
    try:
        status = _status.decode(body)
    except UNDECODABLE:
        status = _Status(message=body[:200].decode("utf-8", "replace"))
    status.code = code
    return _failure(path, status)


def _failure(path: str, status: _Status) -> WatchError:
    text = f"GET {path}: {status.code} {status.reason}: {status.message}".rstrip(": ")
    if status.code == 410:
        return ExpiredError(text)
    if status.code == 403:
        text += "; grant list and watch on it to this ServiceAccount (RBAC)"
    elif status.code == 401:
        text += "; the API server does not accept these credentials: check kubeconfig or token"
    return RefusedError(text, status.code)
