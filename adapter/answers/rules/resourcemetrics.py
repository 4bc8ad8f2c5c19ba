"""The resources of ``metrics.k8s.io``: cpu and memory of pods and nodes, by ``resourceRules``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.rules.usage import CpuMemory, ObjectUsage, UsageReader
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodes import Nodes
from apiservice.errors import Unavailable
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import Steps, WaitingSteps
from apiservice.view.resource import (
    Cell,
    Column,
    Json,
    Key,
    ServedResource,
    ViewGroup,
    ViewProvider,
    ViewResource,
)
from apiservice.wire import duration, instant
from apiservice.wire.quantity import format_binary, format_milli

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_RUNNING: Final = "Running"
"""The phase of the pods that have metrics, as in metrics-server and prometheus-adapter."""
_COLUMNS: Final = (
    Column("cpu", "Cores that are used."),
    Column("memory", "Bytes of memory that are used."),
    Column("Window", "Time over which the values are computed."),
)
_USAGE: Final[Json] = {
    "type": "object",
    "description": "Quantities of cpu and memory.",
    "additionalProperties": {"type": "string"},
}
_TIMES: Final[Json] = {
    "timestamp": {
        "type": "string",
        "format": "date-time",
        "description": "End of the time over which the values are computed.",
    },
    "window": {"type": "string", "description": "The length of this time."},
}
_CONTAINER: Final[Json] = {
    "type": "object",
    "description": "Usage of one container.",
    "properties": {
        "name": {"type": "string", "description": "Name of the container."},
        "usage": _USAGE,
    },
}
PODS: Final = ViewResource(
    plural="pods",
    singular="",
    kind="PodMetrics",
    short_names=(),
    namespaced=True,
    columns=_COLUMNS,
    schema={
        "type": "object",
        "description": "cpu and memory of a pod's containers.",
        "properties": {
            **_TIMES,
            "containers": {
                "type": "array",
                "description": "The containers of the pod.",
                "items": _CONTAINER,
            },
        },
    },
)
NODES: Final = ViewResource(
    plural="nodes",
    singular="",
    kind="NodeMetrics",
    short_names=(),
    namespaced=False,
    columns=_COLUMNS,
    schema={
        "type": "object",
        "description": "cpu and memory of a node.",
        "properties": {**_TIMES, "usage": _USAGE},
    },
)


class PodMetrics(ViewProvider):
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        reader: of the pods' usage.
        pods: the known pods.
    """

    def __init__(self, reader: UsageReader, pods: PodIndex) -> None:
        self._reader = reader
        self._pods = pods

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        if not self._pods.synced:
            raise Unavailable("the pods have not been listed yet; /readyz/pods says why")
        pods = yield from self._pods.select_in_steps(namespace, EVERYTHING)
        return [Key(*pod.ref) for pod in pods if pod.phase == _RUNNING]

    def prepare(self, keys: Sequence[Key], now: float) -> WaitingSteps[None]:
        """See the port."""
        if not self._pods.synced:
            raise Unavailable("the pods have not been listed yet; /readyz/pods says why")
        spaces = dict.fromkeys(key.namespace for key in keys if self._is_running(key))
        names: dict[str, Sequence[str]] = {}
        for space in spaces:
            pods = yield from self._pods.select_in_steps(space, EVERYTHING)
            names[space] = [pod.ref.name for pod in pods if pod.phase == _RUNNING]
        yield from self._reader.read(names, now)

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        pod = self._pods.get(*key)
        return {} if pod is None else pod.labels

    def cells(self, key: Key, now: float) -> Sequence[Cell] | None:
        """See the port."""
        usage = self._usage(key)
        return None if usage is None else _cells(usage, self._reader.window)

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        usage = self._usage(key)
        if usage is None:
            return None
        containers = [
            {"name": name, "usage": _quantities(used)}
            for name, used in sorted(usage.containers.items())
        ]
        times = _times(usage, self._reader.window)
        return {"metadata": _meta(key, self.labels(key), now), **times, "containers": containers}

    def _usage(self, key: Key) -> ObjectUsage | None:
        return self._reader.get(*key) if self._is_running(key) else None

    def _is_running(self, key: Key) -> bool:
        pod = self._pods.get(*key)
        return pod is not None and pod.phase == _RUNNING


class NodeMetrics(ViewProvider):
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        reader: of the nodes' usage.
        nodes: the known nodes.
    """

    def __init__(self, reader: UsageReader, nodes: Nodes) -> None:
        self._reader = reader
        self._nodes = nodes

    def _check(self) -> None:
        if self._nodes.problem:
            raise Unavailable(f"nodes are needed for {GROUP}: {self._nodes.problem}")

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        self._check()
        yield
        return [Key("", node.name) for node in self._nodes.select(EVERYTHING)]

    def prepare(self, keys: Sequence[Key], now: float) -> WaitingSteps[None]:
        """See the port."""
        self._check()
        if any(self._nodes.get(key.name) is not None for key in keys):
            names = [node.name for node in self._nodes.select(EVERYTHING)]
            yield from self._reader.read({"": names}, now)

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        node = self._nodes.get(key.name)
        return {} if node is None else node.labels

    def cells(self, key: Key, now: float) -> Sequence[Cell] | None:
        """See the port."""
        usage = self._usage(key)
        return None if usage is None else _cells(usage, self._reader.window)

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        usage = self._usage(key)
        if usage is None:
            return None
        times = _times(usage, self._reader.window)
        used = _quantities(usage.containers[""])
        return {"metadata": _meta(key, self.labels(key), now), **times, "usage": used}

    def _usage(self, key: Key) -> ObjectUsage | None:
        return self._reader.get("", key.name) if self._nodes.get(key.name) is not None else None


def resource_group(pods: PodMetrics, nodes: NodeMetrics) -> ViewGroup:
    """Return the resources of ``metrics.k8s.io``."""
    return ViewGroup(GROUP, VERSION, (ServedResource(NODES, nodes), ServedResource(PODS, pods)))


def _meta(key: Key, labels: Mapping[str, str], now: float) -> Json:
    meta: Json = {"name": key.name}
    if key.namespace:
        meta["namespace"] = key.namespace
    meta["creationTimestamp"] = instant.write(int(now))
    if labels:
        meta["labels"] = dict(labels)
    return meta


def _times(usage: ObjectUsage, window: int) -> Json:
    return {"timestamp": instant.write(int(usage.time)), "window": duration.write(window)}


def _quantities(usage: CpuMemory) -> Json:
    quantities: Json = {}
    if usage.cpu is not None:
        quantities["cpu"] = format_milli(usage.cpu)
    if usage.memory is not None:
        quantities["memory"] = format_binary(usage.memory)
    return quantities


def _cells(usage: ObjectUsage, window: int) -> Sequence[Cell]:
    cpu = usage.total(lambda container: container.cpu)
    memory = usage.total(lambda container: container.memory)
    return (
        None if cpu is None else format_milli(cpu),
        None if memory is None else format_binary(memory),
        duration.write(window),
    )
