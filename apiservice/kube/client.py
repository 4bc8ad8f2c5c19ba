"""Requests to the API server, over a client that ``connection`` made.

Importing this module costs about 15 MB (aiohttp). A process that may run without a cluster imports
it only when it connects to one.
"""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.failures import TOO_LONG, transport_failure
from apiservice.kube.library import ConfigException
from apiservice.runtime.jsontext import UNREADABLE

_JSON: Final = "application/json"
_MOST_ANSWER: Final = 64 << 20
"""Bytes of an answer. A page of 500 objects is smaller, unless they are of the largest kind."""
_MOST_VERSION: Final = 1 << 16
"""Bytes of an answer of which only the head counts; ``/version`` is a tenth of it."""


class ClusterAnswerError(Exception):
    """The API server did not answer, or answered with a status other than 2xx."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 without a response."""
        self.reason = reason
        """``reason`` of the API server's Status, such as ``NotFound``; empty without one."""

    @property
    def cause(self) -> str:
        """What went wrong, without the method and path of the request."""
        return str(self).partition(": ")[2]


async def call(
    client: ClusterClient,
    method: str,
    path: str,
    body: Any = None,
    timeout_seconds: float = 10.0,
    content_type: str = "application/json",
    *,
    accept: str = "application/json",
    most: int | None = None,
) -> bytes:
    """Send one request to the API server and return the response's bytes.

    Args:
        content_type: type of the body, such as ``application/apply-patch+yaml``.
        accept: what the answer may be.
        most: bytes of the answer that are read, after decompression; None for 64 MiB.

    Raises:
        ClusterAnswerError: see there; also if the answer is longer than ``most``.
    """
    response, answer = await _exchange(
        client,
        method,
        path,
        body,
        timeout_seconds,
        content_type,
        accept=accept,
        most=_MOST_ANSWER if most is None else most,
    )
    if not 200 <= response.status <= 299:
        status = _status(answer)
        raise ClusterAnswerError(
            f"{method} {path}: {response.status} {status.message}", response.status, status.reason
        )
    return answer


class BoundedAnswer(NamedTuple):
    """A response with any status, up to a number of bytes."""

    status: int
    body: bytes
    complete: bool
    """The body was not longer than the limit."""


async def read_bounded(
    client: ClusterClient, path: str, most: int, timeout_seconds: float = 10.0
) -> BoundedAnswer:
    """GET a path behind the API server, such as a pod's page through its proxy.

    Raises:
        ClusterAnswerError: there was no response.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            response = await client.request("GET", path, _within(timeout_seconds), accept="*/*")
            body = await _read(response, most)
            return BoundedAnswer(response.status, body[:most], complete=len(body) <= most)
    except aiohttp.ClientResponseError as error:
        return BoundedAnswer(error.status, b"", complete=True)
    except (aiohttp.ClientError, OSError, ConfigException, ValueError) as error:
        raise ClusterAnswerError(f"GET {path}: {transport_failure(error)}") from error


async def server_time(client: ClusterClient, timeout_seconds: float = 10.0) -> float:
    """Return the API server's clock in epoch seconds: the ``Date`` of any response.

    Raises:
        ClusterAnswerError: the server did not answer, or sent no such header.
    """
    path = "/version"
    response, _ = await _exchange(
        client, "GET", path, None, timeout_seconds, _JSON, most=_MOST_VERSION
    )
    try:
        return parsedate_to_datetime(response.headers["Date"]).timestamp()
    except (KeyError, ValueError) as error:
        raise ClusterAnswerError(f"GET {path}: the response has no usable Date") from error


async def _exchange(
    client: ClusterClient,
    method: str,
    path: str,
    body: Any,
    timeout_seconds: float,
    content_type: str,
    *,
    accept: str = _JSON,
    most: int,
) -> tuple[aiohttp.ClientResponse, bytes]:
    """Return the response with any status, and its body. Raise ClusterAnswerError without one."""
    try:
        # The client's own limit does not apply on a connection with unsolicited bytes.
        async with asyncio.timeout(timeout_seconds):
            response = await client.request(
                *(method, path, _within(timeout_seconds)),
                body=body,
                accept=accept,
                content_type=content_type,
            )
            answer = await _read(response, most)
    except (aiohttp.ClientError, OSError, ConfigException, ValueError) as error:
        raise ClusterAnswerError(f"{method} {path}: {transport_failure(error)}") from error
    if len(answer) > most:
        raise ClusterAnswerError(f"{method} {path}: {TOO_LONG} {most} bytes")
    return response, answer


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the body; if it is longer than ``most``, its first bytes, and more than ``most``."""
    body = bytearray()
    try:
        async for chunk in response.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) > most:
                response.close()
                break
    except BaseException:  # also a task that is cancelled, as when another list has failed
        response.close()
        raise
    return bytes(body)


def _within(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""


def _status(answer: bytes) -> _Status:
    try:
        return msgspec.json.decode(answer, type=_Status)
    except UNREADABLE:
        return _Status(" ".join(answer[:200].decode("utf-8", "replace").split()))
