"""An HPA from its manifest, reduced to what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from adapter.cluster.hpas import ShownCondition, ShownHpa, ShownMetric
from adapter.cluster.workload import Workload, plural
from apiservice.provider import GroupResource

_LONGEST: Final = 1024
"""Characters of a condition's message that are kept."""
_MOST: Final = 64
"""Metrics, and conditions, of one HPA that are kept. The API server limits only its bytes."""
_LONGEST_NAME: Final = 253
"""Characters of a metric's name that are kept. The API server limits only its bytes."""

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
    wanted = (spec.metrics or [])[:_MOST]
    current = _current(wanted, (status.current_metrics or [])[:_MOST])
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
            ShownMetric(*_key(metric), _text(metric.source().target), now)
            for metric, now in zip(wanted, current, strict=True)
        ),
        tuple(
            ShownCondition(
                *(text[:_LONGEST] for text in (each.type, each.status, each.reason, each.message))
            )
            for each in (status.conditions or ())[:_MOST]
        ),
    )


def _current(wanted: Sequence[_Metric], seen: Sequence[_Metric]) -> list[str]:
    """Return the current value of each metric; empty if the status has none, or it is not certain.

    The controller writes the status in the order of the spec. After a change of the spec, or with
    an older controller, a metric that occurs once is found by its name.
    """
    by_key: dict[tuple[str, str], list[str]] = {}
    for metric in seen:
        by_key.setdefault(_key(metric), []).append(_text(metric.source().current))
    found = []
    for at, metric in enumerate(wanted):
        key = _key(metric)
        if at < len(seen) and _key(seen[at]) == key:
            found.append(_text(seen[at].source().current))
        else:
            values = by_key.get(key, [])
            found.append(values[0] if len(values) == 1 else "")
    return found


def _key(metric: _Metric) -> tuple[str, str]:
    source = metric.source()
    return metric.type, (source.metric.name or source.name)[:_LONGEST_NAME]


def _text(amount: _Amount) -> str:
    if amount.average_utilization is not None:
        return f"{amount.average_utilization}%"
    found = amount.value if amount.average_value is None else amount.average_value
    return "" if found is None else str(found)
