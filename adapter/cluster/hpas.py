"""The cluster's HorizontalPodAutoscalers, reduced to what is shown, by the workload they scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from adapter.cluster.table import Table
from adapter.cluster.workload import Workload, plural
from apiservice.kube.reflector import EventType
from apiservice.provider import GroupResource

_LONGEST: Final = 1024
"""Characters of a condition's message that are kept."""
_MOST: Final = 64
"""Metrics, and conditions, of one HPA that are kept. The API server limits only its bytes."""
_RESOURCES: Final = ("Resource", "ContainerResource")
"""Types of metrics that metrics.k8s.io serves."""


class ShownMetric(NamedTuple):
    """One metric that an HPA reads."""

    type: str
    """``Pods``, ``Object``, ``External``, ``Resource`` or ``ContainerResource``."""
    name: str
    target: str
    """A quantity, or a percentage such as ``60%``; empty if the manifest has none."""
    current: str
    """As in the HPA's status; empty if the controller has no value."""

    @property
    def custom(self) -> bool:
        """Whether the custom or external metrics API serves it."""
        return self.type not in _RESOURCES


class ShownCondition(NamedTuple):
    """A condition of an HPA's status."""

    type: str
    status: str
    reason: str
    message: str


class ShownHpa(NamedTuple):
    """A HorizontalPodAutoscaler."""

    namespace: str
    name: str
    scales: Workload
    low: int
    high: int
    current: int | None
    """Replicas as of its status; None if it has no status yet."""
    desired: int | None
    metrics: tuple[ShownMetric, ...]
    conditions: tuple[ShownCondition, ...]

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


class Hpas(Table[tuple[str, str], ShownHpa]):
    """The cluster's HPAs, indexed by what they scale."""

    def __init__(self) -> None:
        super().__init__()
        self._scaling: dict[tuple[str, Workload], dict[str, ShownHpa]] = {}

    def of(self, namespace: str, workloads: Iterable[Workload]) -> Sequence[ShownHpa]:
        """Return the HPAs that scale one of these workloads, by name."""
        found: dict[str, ShownHpa] = {}
        for workload in workloads:
            found |= self._scaling.get((namespace, workload), {})
        return [found[name] for name in sorted(found)]

    def replace(self, items: Sequence[ShownHpa]) -> None:
        """Take a complete list of HPAs."""
        super().replace(items)
        self._scaling = {}
        for item in self:
            self._add(item)

    def apply(self, event: EventType, item: ShownHpa) -> None:
        """Take one added, modified or deleted HPA."""
        old = self.find(item.key)
        super().apply(event, item)
        if old is not None:
            self._drop(old)
        if event is not EventType.DELETED:
            self._add(item)

    def _add(self, item: ShownHpa) -> None:
        self._scaling.setdefault((item.namespace, item.scales), {})[item.name] = item

    def _drop(self, item: ShownHpa) -> None:
        some = self._scaling.get((item.namespace, item.scales), {})
        some.pop(item.name, None)
        if not some:
            self._scaling.pop((item.namespace, item.scales), None)


_Quantity = str | int | float


class _Meta(msgspec.Struct):
    name: str
    namespace: str = "default"


class _Named(msgspec.Struct):
    name: str = ""


class _Amount(msgspec.Struct, rename="camel"):
    value: _Quantity | None = None
    average_value: _Quantity | None = None
    average_utilization: int | None = None


class _Source(msgspec.Struct):
    name: str = ""
    metric: _Named = msgspec.field(default_factory=_Named)
    target: _Amount = msgspec.field(default_factory=_Amount)
    current: _Amount = msgspec.field(default_factory=_Amount)


class _Metric(msgspec.Struct, rename="camel"):
    type: str = ""
    pods: _Source | None = None
    object: _Source | None = None
    external: _Source | None = None
    resource: _Source | None = None
    container_resource: _Source | None = None

    def source(self) -> _Source:
        """Return the part that describes the metric."""
        found = (self.pods, self.object, self.external, self.resource, self.container_resource)
        return next((each for each in found if each is not None), _Source())


class _Reference(msgspec.Struct, rename="camel"):
    kind: str
    name: str
    api_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Reference
    max_replicas: int
    min_replicas: int | None = None
    metrics: list[_Metric] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    current_replicas: int | None = None
    desired_replicas: int | None = None
    current_metrics: list[_Metric] | None = None
    conditions: list[_Condition] | None = None


class HpaManifest(msgspec.Struct):
    """The fields of an ``autoscaling/v2`` HorizontalPodAutoscaler that this project shows."""

    metadata: _Meta
    spec: _Spec
    status: _Status | None = None


_manifest = msgspec.json.Decoder(HpaManifest)


def decode(raw: msgspec.Raw | bytes) -> ShownHpa:
    """Decode an HPA from its JSON. Raises msgspec.DecodeError."""
    return reduce(_manifest.decode(raw))


def reduce(manifest: HpaManifest) -> ShownHpa:
    """Return the parts of a manifest that are kept."""
    meta, spec, status = manifest.metadata, manifest.spec, manifest.status or _Status()
    current = {
        _key(metric): _text(metric.source().current)
        for metric in (status.current_metrics or ())[: 2 * _MOST]
    }
    target = spec.scale_target_ref
    group, _, _ = target.api_version.rpartition("/")
    return ShownHpa(
        meta.namespace,
        meta.name,
        Workload(GroupResource(plural(target.kind), group), target.name),
        1 if spec.min_replicas is None else spec.min_replicas,
        spec.max_replicas,
        status.current_replicas,
        status.desired_replicas,
        tuple(
            ShownMetric(*_key(metric), _text(metric.source().target), current.get(_key(metric), ""))
            for metric in (spec.metrics or ())[:_MOST]
        ),
        tuple(
            ShownCondition(each.type, each.status, each.reason, each.message[:_LONGEST])
            for each in (status.conditions or ())[:_MOST]
        ),
    )


def _key(metric: _Metric) -> tuple[str, str]:
    source = metric.source()
    return metric.type, source.metric.name or source.name


def _text(amount: _Amount) -> str:
    if amount.average_utilization is not None:
        return f"{amount.average_utilization}%"
    found = amount.value if amount.average_value is None else amount.average_value
    return "" if found is None else str(found)
