"""``serve`` behind the demo's API server: requests are forwarded as kube-apiserver forwards them.

The front proxy's client certificate proves who forwards. Headers name the user. An answer is
streamed, and bounded in bytes and time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from starlette.types import Scope, Send

from adapter.demo.certificates import FrontProxy
from apiservice.errors import Unavailable
from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import client_context
from apiservice.wire.accept import accept_header

USER: Final = "demo"
"""The user of the demo's kubeconfig."""
GROUPS: Final = ("demo:users", "system:authenticated")
AT_ONCE: Final = 32
"""Requests to ``serve`` at once."""
MOST_BYTES: Final = 64 << 20
"""Bytes of one answer."""
SECONDS: Final = 30.0
"""Time for one answer."""
_FAILURES: Final = (RequestError, OSError)  # also a time-out
_KEPT: Final = ("content-type", "cache-control", "etag", "vary", "last-modified", "allow")


class Upstream:
    """A pool of connections to ``serve``."""

    def __init__(self, base: str, proxy: FrontProxy, ca: Path) -> None:
        """``ca`` is the serving certificate's CA; it may appear later than this object."""
        self._base, self._proxy, self._ca = base, proxy, ca
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._http: HttpClient | None = None

    async def forward(self, scope: Scope, send: Send) -> None:
        """Answer a request with the answer of ``serve``.

        Raises:
            Unavailable: ``serve`` does not answer, and nothing has been sent.
        """
        path = scope.get("raw_path", scope["path"].encode()).decode("ascii")
        query = scope["query_string"].decode("ascii")
        target = f"{path}?{query}" if query else path
        headers = {"Accept": accept_header(scope["headers"]).decode("latin-1") or "*/*"}
        begun = False
        try:
            async with self._request(scope["method"], target, headers) as answer:
                fields = [
                    (name.lower().encode(), text.encode("latin-1"))
                    for name, text in answer.headers.items()
                    if name.lower() in _KEPT
                ]
                begun = True
                await send(
                    {"type": "http.response.start", "status": answer.status_code, "headers": fields}
                )
                async for chunk in _chunks(answer):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except _FAILURES as error:
            if begun:  # the connection is cut, so that no client takes a part for the whole
                raise
            raise Unavailable(f"serve does not answer: {error or type(error).__name__}") from None
        await send({"type": "http.response.body", "body": b""})

    async def json(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        """Return a JSON document of ``serve``.

        Raises:
            Unavailable: there is none.
        """
        try:
            async with self._request("GET", path, {"Accept": accept}) as answer:
                body = b"".join([chunk async for chunk in _chunks(answer)])
                document: dict[str, Any] = msgspec.json.decode(body, type=dict)
        except (*_FAILURES, ValueError) as error:
            raise Unavailable(f"serve does not answer: {error or type(error).__name__}") from None
        return document

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    @asynccontextmanager
    async def _request(
        self, method: str, target: str, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        user = [("X-Remote-User", USER), *(("X-Remote-Group", group) for group in GROUPS)]
        url, all_headers = self._base + target, [*headers.items(), *user]
        async with (
            self._turns,
            asyncio.timeout(SECONDS),
            self._client().send(method, url, headers=all_headers) as answer,
        ):
            yield answer

    def _client(self) -> HttpClient:
        if self._http is None:
            context = client_context(self._ca)
            context.load_cert_chain(self._proxy.certificate, self._proxy.key)
            self._http = HttpClient(lambda: context, {"Accept-Encoding": "identity"})
        return self._http


async def _chunks(answer: httpx.Response) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in answer.aiter_raw():
        size += len(chunk)
        if size > MOST_BYTES:
            raise RequestError("protocol", f"the answer is larger than {MOST_BYTES} bytes")
        yield chunk
