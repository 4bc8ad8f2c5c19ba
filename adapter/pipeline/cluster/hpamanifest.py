"""An HPA from its manifest, reduced to what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapter.hpa.quantity import parse
from adapter.pipeline.cluster import keptbytes
from adapter.pipeline.cluster.hpas import TOLERANCES, ShownCondition, ShownHpa, ShownMetric
from adapter.pipeline.cluster.workload import Workload, plural
from apiservice.provider import GroupResource
from apiservice.wire import instant

_LONGEST: Final = 1024
"""Characters of a condition's message, and of a selector, that are kept."""
_MOST: Final = 64
"""Metrics, and conditions, of one HPA that are kept. The API server limits only its bytes."""
_LONGEST_NAME: Final = 253
"""Characters of a metric's name that are kept. The API server limits only its bytes."""

_Quantity = str | int | float


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Write(msgspec.Struct):
    time: Any = None
    subresource: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = "default"
    generation: int | None = None
    creation_timestamp: Any = None
    """A text; YAML makes a datetime of it, as of the times below."""
    owner_references: list[_Owner] | None = None
    managed_fields: list[_Write] | None = None


class _Named(msgspec.Struct):
    name: str = ""
    selector: dict[str, Any] | None = None


class _Described(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Amount(msgspec.Struct, rename="camel"):
    type: str = ""
    value: _Quantity | None = None
    average_value: _Quantity | None = None
    average_utilization: int | None = None


class _Source(msgspec.Struct, rename="camel"):
    name: str = ""
    metric: _Named = msgspec.field(default_factory=_Named)
    described_object: _Described = msgspec.field(default_factory=_Described)
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
        sources = (self.pods, self.object, self.external, self.resource, self.container_resource)
        return next((source for source in sources if source is not None), _Source())


class _Reference(msgspec.Struct, rename="camel"):
    kind: str
    name: str
    api_version: str = ""


class _Rules(msgspec.Struct, rename="camel"):
    select_policy: str | None = None
    tolerance: _Quantity | None = None


class _Behavior(msgspec.Struct, rename="camel"):
    scale_up: _Rules | None = None
    scale_down: _Rules | None = None


class _Spec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Reference
    max_replicas: int
    min_replicas: int | None = None
    metrics: list[_Metric] | None = None
    behavior: _Behavior | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Any = None


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int | None = None
    last_scale_time: Any = None
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
    """Decode an HPA from its JSON.

    Raises:
        msgspec.DecodeError: it is not an HPA.
        OversizedError: so much of it would be kept that it is left out.
    """
    manifest = _manifest.decode(raw)
    keptbytes.check(raw, manifest, reduce)
    return reduce(manifest)


def reduce(manifest: HpaManifest) -> ShownHpa:
    """Return the parts of a manifest that are kept."""
    meta, spec, status = manifest.metadata, manifest.spec, manifest.status or _Status()
    behavior = spec.behavior or _Behavior()
    up, down = behavior.scale_up or _Rules(), behavior.scale_down or _Rules()
    wanted = (spec.metrics or [])[:_MOST]
    current = _current_values(wanted, (status.current_metrics or [])[:_MOST])
    target = spec.scale_target_ref
    group, _, _ = target.api_version.rpartition("/")
    return ShownHpa(
        meta.namespace,
        meta.name,
        Workload(GroupResource(plural(target.kind), group), target.name),
        1 if spec.min_replicas is None else spec.min_replicas,
        spec.max_replicas,
        _size(status),
        status.desired_replicas,
        tuple(_shown_metric(metric, now) for metric, now in zip(wanted, current, strict=True)),
        tuple(
            ShownCondition(
                condition.type[:_LONGEST],
                condition.status[:_LONGEST],
                condition.reason[:_LONGEST],
                condition.message[:_LONGEST],
                instant.read(condition.last_transition_time),
            )
            for condition in (status.conditions or ())[:_MOST]
        ),
        target.kind,
        instant.read(meta.creation_timestamp),
        instant.read(status.last_scale_time),
        _unseen_since(meta, status),
        next((row.name for row in meta.owner_references or () if row.kind == "ScaledObject"), ""),
        (_tolerance(down, TOLERANCES[0]), _tolerance(up, TOLERANCES[1])),
        up.select_policy == "Disabled",
        down.select_policy == "Disabled",
    )


def _size(status: _Status) -> int | None:
    """Return the replicas that the controller last saw; None if it has seen none.

    The API server leaves out a 0 (``currentReplicas,omitempty`` in ``autoscaling/v2/types.go``).
    Once the controller has read the scale, which AbleToScale says, a missing number is a 0.
    """
    scale_read = any(
        row.type == "AbleToScale" and row.status == "True" for row in status.conditions or ()
    )
    return 0 if status.current_replicas is None and scale_read else status.current_replicas


def _shown_metric(metric: _Metric, now: str) -> ShownMetric:
    source = metric.source()
    target, selector, about = source.target, source.metric.selector, source.described_object
    kind = target.type or ("Value" if target.average_value is None else "AverageValue")
    if target.average_utilization is not None:
        kind = "Utilization"
    if selector and len(str(selector)) > _LONGEST:
        kind, selector = "", None
    return ShownMetric(
        *_key(metric),
        _text(target),
        now,
        kind,
        selector or None,
        (about.kind[:_LONGEST_NAME], about.name[:_LONGEST_NAME]),
    )


def _tolerance(rules: _Rules, default: float) -> float:
    """Return the tolerance of one direction (gate HPAConfigurableTolerance, on since 1.35)."""
    try:
        return default if rules.tolerance is None else float(parse(rules.tolerance))
    except ValueError:
        return default


def _unseen_since(meta: _Meta, status: _Status) -> float | None:
    """Return since when the controller has not looked at the spec.

    The API server counts an HPA's generation, and the controller writes the one it has seen, since
    kubernetes/kubernetes pull request 138228; before it neither number is set.
    """
    observed = status.observed_generation
    if observed is None or meta.generation is None or observed >= meta.generation:
        return None
    writes = [instant.read(row.time) for row in meta.managed_fields or () if not row.subresource]
    return max((time for time in writes if time is not None), default=None)


def _current_values(wanted: Sequence[_Metric], current_metrics: Sequence[_Metric]) -> list[str]:
    """Return the current value of each metric; empty if the status has none, or it is not certain.

    The controller writes the status in the order of the spec. After a change of the spec, or with
    an older controller, a metric that occurs once is found by its name.
    """
    by_key: dict[tuple[str, str], list[_Amount]] = {}
    for metric in current_metrics:
        by_key.setdefault(_key(metric), []).append(metric.source().current)
    texts = []
    for index, metric in enumerate(wanted):
        key, target = _key(metric), metric.source().target
        if index < len(current_metrics) and _key(current_metrics[index]) == key:
            texts.append(_value_of_type(target, current_metrics[index].source().current))
        else:
            values = by_key.get(key, [])
            texts.append(_value_of_type(target, values[0]) if len(values) == 1 else "")
    return texts


def _value_of_type(target: _Amount, current: _Amount) -> str:
    """Return the current value of the target's type: a status may have several."""
    if target.average_value is not None and current.average_value is not None:
        return str(current.average_value)
    if target.average_utilization is None or current.average_utilization is not None:
        return _text(current)
    return ""


def _key(metric: _Metric) -> tuple[str, str]:
    source = metric.source()
    return metric.type, (source.metric.name or source.name)[:_LONGEST_NAME]


def _text(amount: _Amount) -> str:
    if amount.average_utilization is not None:
        return f"{amount.average_utilization}%"
    text = amount.value if amount.average_value is None else amount.average_value
    return "" if text is None else str(text)
