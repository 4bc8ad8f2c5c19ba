"""An HPA's spec with its defaults, and the settings of kube-controller-manager.

Defaults: ``pkg/apis/autoscaling/v2/defaults.go`` and
``pkg/controller/podautoscaler/config/v1alpha1/defaults.go`` of k8s.io/kubernetes v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


def source_key(kind: str) -> str:
    """Return the key of a metric's part of the manifest: ``containerResource``."""
    return kind[:1].lower() + kind[1:]


class MetricKind(StrEnum):
    """``spec.metrics[].type``."""

    PODS = "Pods"
    OBJECT = "Object"
    EXTERNAL = "External"
    RESOURCE = "Resource"
    CONTAINER = "ContainerResource"

    @property
    def of_resources(self) -> bool:
        """Whether ``metrics.k8s.io`` answers for it, rather than the custom or external API."""
        return self in (MetricKind.RESOURCE, MetricKind.CONTAINER)


class TargetKind(StrEnum):
    """``target.type``: the quantity that the target is compared with."""

    VALUE = "Value"
    AVERAGE_VALUE = "AverageValue"
    UTILIZATION = "Utilization"
    """Percent of the pods' requests; of Resource and ContainerResource metrics."""

    @property
    def key(self) -> str:
        """The field of a target that has the number."""
        return "averageUtilization" if self is TargetKind.UTILIZATION else source_key(self)


def compared_kind(metric: MetricKind, stated: str, *, averaged: bool) -> TargetKind:
    """Return the kind of target that the controller compares a metric with (``horizontal.go``).

    It goes by ``target.type`` for an Object metric only, and else by the fields that are set.

    Args:
        metric: the kind of the metric.
        stated: ``target.type``, which has to be valid for an Object metric.
        averaged: whether ``averageValue`` is set.
    """
    if metric is MetricKind.OBJECT:
        return TargetKind(stated)
    if metric is MetricKind.PODS or averaged:
        return TargetKind.AVERAGE_VALUE
    return TargetKind.UTILIZATION if metric.of_resources else TargetKind.VALUE


class PolicyKind(StrEnum):
    """``behavior.scale*.policies[].type``."""

    PODS = "Pods"
    PERCENT = "Percent"


class Select(StrEnum):
    """``behavior.scale*.selectPolicy``: which of several policies applies."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class MetricTarget(NamedTuple):
    """The target of a metric's value."""

    kind: TargetKind
    milli: int
    """Thousandths of the metric's unit, or of a percent, above 0; rounded up as
    ``Quantity.MilliValue`` does."""


class DescribedObject(NamedTuple):
    """``object.describedObject``."""

    kind: str
    name: str
    api_version: str


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One entry of ``spec.metrics``."""

    kind: MetricKind
    name: str
    """The metric, or the resource: ``cpu``."""
    target: MetricTarget
    selector: Mapping[str, Any] | None = None
    """``metric.selector`` from the manifest: a LabelSelector, or None."""
    described: DescribedObject | None = None
    """Set for Object metrics only."""
    container: str = ""
    """Set for ContainerResource metrics only."""


DEFAULT_CPU = MetricSpec(MetricKind.RESOURCE, "cpu", MetricTarget(TargetKind.UTILIZATION, 80_000))
"""The metric that the API server gives an HPA without metrics."""


class ScalingPolicy(NamedTuple):
    """The largest change allowed within a period."""

    kind: PolicyKind
    value: int
    """Pods, or percent of the replicas at the period's start; above 0."""
    period: float
    """Seconds, 1 to 1800."""


@dataclass(frozen=True, slots=True)
class Rules:
    """``behavior.scaleUp`` or ``behavior.scaleDown``."""

    policies: tuple[ScalingPolicy, ...]
    select: Select = Select.MAX
    window: float | None = None
    """Stabilization window in seconds, 0 to 3600. None, allowed for scaling down only,
    uses the controller's own setting."""
    tolerance: float | None = None
    """Share of the target; None uses the controller's own setting."""


DEFAULT_SCALE_UP = Rules(
    policies=(ScalingPolicy(PolicyKind.PODS, 4, 15), ScalingPolicy(PolicyKind.PERCENT, 100, 15)),
    window=0,
)
DEFAULT_SCALE_DOWN = Rules(policies=(ScalingPolicy(PolicyKind.PERCENT, 100, 15),))


@dataclass(frozen=True, slots=True)
class Behavior:
    """``spec.behavior``, with the API server's defaults for keys that the manifest omits."""

    scale_up: Rules = DEFAULT_SCALE_UP
    scale_down: Rules = DEFAULT_SCALE_DOWN


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """``spec`` of a HorizontalPodAutoscaler."""

    max_replicas: int
    metrics: tuple[MetricSpec, ...]
    min_replicas: int = 1
    """0 takes effect only with ``ControllerOptions.scale_to_zero``."""
    behavior: Behavior | None = None
    """None if the manifest has no behavior. That differs from an empty one: the controller then
    records no scale events and caps a step at max(2 x current, 4)."""
    target: DescribedObject | None = None
    """``scaleTargetRef``; not used for the decision."""
    name: str = ""
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """kube-controller-manager's own settings, with its defaults."""

    tolerance: float = 0.1
    """--horizontal-pod-autoscaler-tolerance, a share of the target."""
    downscale_stabilization: float = 300.0
    """--horizontal-pod-autoscaler-downscale-stabilization, seconds."""
    scale_to_zero: bool = False
    """Feature gate HPAScaleToZero: on by default from 1.37 on; alpha, and off, before."""
    cpu_initialization: float = 300.0
    """--horizontal-pod-autoscaler-cpu-initialization-period, seconds."""
    initial_readiness: float = 30.0
    """--horizontal-pod-autoscaler-initial-readiness-delay, seconds."""
    sync_period: float = 15.0
    """--horizontal-pod-autoscaler-sync-period, seconds: how often to call ``decide``."""
