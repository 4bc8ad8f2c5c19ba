"""Clients that send requests during faults, and a record of all answers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc
import httpx

from adapter.answers.keda import externalscaler_pb2 as messages
from tests.e2e.cluster import Cluster, RefusedError
from tests.e2e.controlplane import ControlPlane
from tests.e2e.process import wait_until
from tests.e2e.truth import METRIC, Truth

_PAUSE = 0.2
_PATIENCE = 120.0
"""Timeout in seconds, with a margin for slow machines."""
_PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{ns}/pods/%2A/{metric}"
_APP = "?labelSelector=app%3Dinference"
_HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
_GET_METRICS = "/externalscaler.ExternalScaler/GetMetrics"


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one request."""

    begun: float
    """Seconds of the monotonic clock."""
    failure: str = ""
    """Empty if it was answered."""
    pods: frozenset[str] = frozenset()
    """The pods whose values it contained."""
    wrong: tuple[str, ...] = ()
    """The wrong values."""


class Asker(Protocol):
    """Sends one request and judges the answer."""

    def ask(self) -> Answer:
        """Send a request. Failures of the server are part of the outcome."""

    def close(self) -> None:
        """Close the connections."""


@dataclass
class Client:
    """A thread that sends requests continuously."""

    name: str
    asker: Asker
    answers: list[Answer] = field(default_factory=list)

    @property
    def pods(self) -> frozenset[str]:
        """The pods whose values the last answer contained."""
        return self.answers[-1].pods if self.answers else frozenset()


class Traffic:
    """Use as a context manager: every client sends five requests a second until its end."""

    def __init__(self, clients: Mapping[str, Asker]) -> None:
        self.clients = {name: Client(name, asker) for name, asker in clients.items()}
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(client,), name=f"traffic {client.name}")
            for client in self.clients.values()
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for client in self.clients.values():
            client.asker.close()

    def failed(self, *names: str) -> Counter[str]:
        """Failures of these clients, or of all, by client and kind."""
        chosen = [self.clients[name] for name in names or self.clients]
        return Counter(
            f"{client.name}: {answer.failure}"
            for client in chosen
            for answer in client.answers
            if answer.failure
        )

    def wrong(self, *names: str) -> Counter[str]:
        """Wrong values in answers to these clients, or to all, by client."""
        rows = [self.clients[name] for name in names or self.clients]
        return Counter(f"{c.name}: {text}" for c in rows for a in c.answers for text in a.wrong)

    def wait_pods(
        self, count: int | Callable[[frozenset[str]], bool], *names: str, seconds: float = 180
    ) -> None:
        """Wait until the last answers to these clients, or all, contain ``count`` pods."""
        chosen = [self.clients[name] for name in names or self.clients]
        fits = count if callable(count) else lambda pods: len(pods) == count
        wait_until(
            lambda: all(fits(client.pods) for client in chosen),
            f"{[client.name for client in chosen]} have {count} pods; "
            f"{[(sorted(client.pods), client.answers[-1:]) for client in chosen]}",
            seconds,
        )

    def wait_more(self, count: int = 5, *names: str, seconds: float = 180) -> None:
        """Wait until each of these clients, or of all, has sent ``count`` more requests."""
        before = {name: len(self.clients[name].answers) for name in names or self.clients}
        wait_until(
            lambda: all(len(self.clients[name].answers) >= n + count for name, n in before.items()),
            f"{sorted(before)} go on asking",
            seconds,
        )

    def _run(self, client: Client) -> None:
        while not self._ended.is_set():
            client.answers.append(client.asker.ask())
            self._ended.wait(_PAUSE)


class Lists:
    """The HPA controller's own request, for the pods of one namespace.

    Args:
        cluster: the API server or an adapter; closed with this object.
        ahead: see :meth:`Truth.complaints`.
    """

    def __init__(self, cluster: Cluster, namespace: str, truth: Truth, ahead: float = 0.0) -> None:
        self._cluster = cluster
        cluster.client.timeout = _PATIENCE
        self._path = _PATH.format(ns=namespace, metric=METRIC) + _APP
        self._truth = truth
        self._ahead = ahead

    def ask(self) -> Answer:
        """See :class:`Asker`."""
        begun = time.monotonic()
        try:
            items = self._cluster.get(self._path)["items"]
        except RefusedError as error:
            if error.code == 404 and "NotFound" in error.text:
                return Answer(begun)  # no pod has a value: an HPA keeps its replicas
            return Answer(begun, f"{error.code}: {error.text[:200]}")
        except httpx.TransportError as error:
            return Answer(begun, f"{type(error).__name__}: {error}")
        wrong = [s for item in items for s in self._truth.complaints(item, begun, self._ahead)]
        pods = frozenset(item["describedObject"]["name"] for item in items)
        return Answer(begun, pods=pods, wrong=tuple(wrong))

    def close(self) -> None:
        """See :class:`Asker`."""
        self._cluster.close()


def hpa(plane: ControlPlane) -> Cluster:
    """The API server with the permissions and the timeout of the HPA controller."""
    user = plane.client(_HPA, "system:serviceaccounts", "system:authenticated")
    user.client.timeout = _PATIENCE
    return user


def controller(plane: ControlPlane, namespace: str, truth: Truth) -> Lists:
    """Sends requests through the API server, like the HPA controller."""
    return Lists(hpa(plane), namespace, truth)


class Calls:
    """KEDA's ``GetMetrics`` on one trigger of a workload, whose pods all have one utilisation.

    Args:
        expected: the correct values.
    """

    def __init__(self, address: str, namespace: str, expected: Sequence[float]) -> None:
        self._channel = grpc.insecure_channel(address)
        self._ask = self._channel.unary_unary(
            _GET_METRICS,
            request_serializer=messages.GetMetricsRequest.SerializeToString,
            response_deserializer=messages.GetMetricsResponse.FromString,
        )
        metadata = {"metric": "gpu_utilization", "target": "70", "podSelector": "app=inference"}
        ref = messages.ScaledObjectRef(
            name="inference", namespace=namespace, scalerMetadata=metadata
        )
        self._request = messages.GetMetricsRequest(scaledObjectRef=ref)
        self._expected = frozenset(expected)

    def ask(self) -> Answer:
        """See :class:`Asker`. A trigger whose pods have no value is answered UNAVAILABLE."""
        begun = time.monotonic()
        try:
            (row,) = self._ask(self._request, timeout=_PATIENCE).metricValues
        except grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
            if "have no value" in details:
                return Answer(begun)
            return Answer(begun, f"{code.name}: {details}")
        value = row.metricValueFloat
        wrong = () if value in self._expected else (f"{value} instead of {set(self._expected)}",)
        return Answer(begun, pods=frozenset(("all",)), wrong=wrong)

    def close(self) -> None:
        """See :class:`Asker`."""
        self._channel.close()
