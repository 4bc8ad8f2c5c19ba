"""A client of the metrics API that sends kube-controller-manager's requests through the proxy.

The request was recorded from control plane 1.36: path with ``%2A``, ``labelSelector``, the
controller's Accept header, and the front proxy's client certificate and ``X-Remote-*`` headers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

import msgspec

from adapter.demo.certificates import FrontProxy
from adapter.hpa import Missing
from adapter.pipeline.cluster.metricsapi import GarbledAnswerError, pods_path, read_values
from apiservice.runtime.httpclient import HttpClient
from apiservice.runtime.requesterror import RequestError
from apiservice.runtime.servertrust import client_context

USER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
ACCEPT = "application/vnd.kubernetes.protobuf, */*"
_HEADERS = [
    ("Accept", ACCEPT),
    ("X-Remote-User", USER),
    *(("X-Remote-Group", group) for group in GROUPS),
]
_FAILURES = (RequestError, OSError)  # also a time-out
_SECONDS = 5.0


Answer = dict[str, int] | Missing
"""The result of one request: pod -> value in thousandths, or why there is none."""


class MetricsReader(Protocol):
    """The HPA's access to metric values."""

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the metric of all pods that match. Never raises: an error is ``Missing``."""


class SimulatedReader(MetricsReader, Protocol):
    """Reads the simulation, without ``serve``."""

    def scrape(self) -> None:
        """Take what the pages say now."""


@dataclass(slots=True)
class Tally:
    """Requests made so far, by outcome."""

    requests: int = 0
    answered: int = 0
    """Requests that returned at least one value."""
    seconds: list[float] = field(default_factory=list)
    """Duration of each request, in seconds."""


class MetricsClient:
    """A connection pool to ``serve``, like the aggregator's."""

    def __init__(self, base: str, proxy: FrontProxy, ca: Path) -> None:
        """``ca`` is the serving certificate's CA; it may appear later than this object."""
        self._base = base
        self._proxy = proxy
        self._ca = ca
        self._http: HttpClient | None = None
        self.tally = Tally()

    async def ready(self) -> str:
        """Return an empty text once ``/readyz`` answers ok, else its answer."""
        if not self._ca.is_file():
            return "no serving certificate yet"
        try:
            status, body = await self._get("/readyz?verbose")
        except _FAILURES as error:
            return str(error) or type(error).__name__
        return "" if status == HTTPStatus.OK else body.decode(errors="replace").strip()

    async def pods(self, namespace: str, metric: str, label_selector: str) -> Answer:
        """Return the metric of all matching pods. Never raises: an error is ``Missing``."""
        start = time.perf_counter()
        self.tally.requests += 1
        url = pods_path(namespace, metric, label_selector)
        try:
            answer = await self._get(url, _HEADERS)
        except _FAILURES as error:
            return Missing(str(error) or type(error).__name__)
        finally:
            self.tally.seconds.append(time.perf_counter() - start)
        values = decode(*answer)
        self.tally.answered += not isinstance(values, Missing) and bool(values)
        return values

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    async def _get(self, path: str, headers: Sequence[tuple[str, str]] = ()) -> tuple[int, bytes]:
        if self._http is None:
            context = client_context(self._ca)
            context.load_cert_chain(self._proxy.certificate, self._proxy.key)
            self._http = HttpClient(lambda: context, {"User-Agent": "gpu-metrics-adapter"})
        async with (
            asyncio.timeout(_SECONDS),
            self._http.send("GET", self._base + path, headers=headers) as answer,
        ):
            return answer.status_code, await answer.aread()


class _Status(msgspec.Struct):
    message: str = ""
    code: int = 0


def decode(status: int, body: bytes) -> Answer:
    """Decode a MetricValueList or Status; of several items for a pod the last counts."""
    try:
        if status != HTTPStatus.OK:
            problem = msgspec.json.decode(body, type=_Status)
            return Missing(problem.message or f"HTTP {status}")
        return {value.name: value.milli for value in read_values(body)}
    except (msgspec.DecodeError, GarbledAnswerError) as error:
        return Missing(f"HTTP {status}, and the body is not usable: {error}")
