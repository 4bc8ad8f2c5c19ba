"""Ask a metrics server for values: through the API server, or at an address."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.fetch import DirectFetcher
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.runtime.servertrust import client_context

MOST_BYTES: Final = 4 << 20
"""Bytes of one answer."""
_MOST_CA: Final = 1 << 20


class MetricsServer(Protocol):
    """A server of the metrics APIs."""

    async def get(self, path: str) -> Json:
        """Return the answer to a path; raises ClientError with the status."""


class Aggregated:
    """The server behind the APIServices, asked with the caller's rights."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def get(self, path: str) -> Json:
        """See :class:`MetricsServer`."""
        answer = await self._api.page(path, MOST_BYTES)
        return decode_answer(path, answer.status, answer.body, complete=answer.complete)


class Addressed:
    """A server at a URL, asked with a token over TLS.

    Args:
        fetcher: of the session.
        url: such as ``https://localhost:8443``.
        context: trusts the server's CA.
        host: the name in the server's certificate; empty if it is the URL's.
        token: of the account that asks.
    """

    def __init__(
        self, fetcher: DirectFetcher, url: str, context: ssl.SSLContext, host: str, token: str
    ) -> None:
        self._fetcher = fetcher
        self._url = url.rstrip("/")
        self._context = context
        self._host = "" if host == urlsplit(url).hostname else host
        self._token = token

    async def get(self, path: str) -> Json:
        """See :class:`MetricsServer`."""
        answer = await self._fetcher.read(
            f"{self._url}{path}",
            MOST_BYTES,
            token=self._token,
            context=self._context,
            host=self._host,
        )
        if answer.error:
            raise ClientError(f"{self._url}: {answer.error}")
        return decode_answer(path, answer.status, answer.body, complete=answer.complete)


def decode_answer(path: str, status: int, body: bytes, *, complete: bool) -> Json:
    """Return a JSON answer; raises ClientError for an error or another answer."""
    if not complete:
        raise ClientError(f"{path}: more than {MOST_BYTES} bytes", status)
    try:
        answer: Json = msgspec.json.decode(body, type=dict)
    except UNREADABLE:
        if status < 400:
            raise ClientError(f"{path}: the answer is not JSON") from None
        answer = {}
    if status >= 400:
        message = " ".join(str(answer.get("message") or "")[:300].split())
        raise ClientError(f"{status} {message}".strip(), status, str(answer.get("reason") or ""))
    return answer


def trust(file: Path) -> tuple[ssl.SSLContext, bytes]:
    """Return a TLS context that trusts the CAs of a file, and their PEM text.

    Raises:
        ClientError: the file has no certificate.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_CA + 1)
        if len(content) > _MOST_CA:
            raise ClientError(f"{file}: larger than {_MOST_CA} bytes; name the CA's certificate")
        return client_context(ca_data=content.decode("ascii")), content
    except ssl.SSLError as error:
        raise ClientError(
            f"{file}: has no PEM certificate ({error.reason}); name the CA's file"
        ) from None
    except OSError as error:
        raise ClientError(f"{file}: {error.strerror or error}") from None
    except ValueError as error:
        raise ClientError(f"{file}: has no PEM certificate ({error}); name the CA's file") from None


async def token_of_controller(api: Api) -> str:
    """Return a short-lived token of the HPA controller's account; raises ClientError."""
    path = "/api/v1/namespaces/kube-system/serviceaccounts/horizontal-pod-autoscaler/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    answer = await api.post(path, body)
    return str((answer.get("status") or {}).get("token") or "")
