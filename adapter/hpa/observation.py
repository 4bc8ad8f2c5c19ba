"""The input of one sync (the scale target, its pods, the metrics' values), and proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class PodState(NamedTuple):
    """A pod that the scale target's selector matches, finished and deleted ones included."""

    name: str
    phase: str = "Running"
    """``status.phase``."""
    ready: bool = True
    """The Ready condition is True. It matters only to Object and External values: Pods metrics
    count a running pod even if it is not ready."""
    deleting: bool = False
    """A deletionTimestamp is set."""
    started: float | None = None
    """``status.startTime``, epoch seconds; it matters only to CPU."""
    ready_since: float | None = None
    """``lastTransitionTime`` of the Ready condition, epoch seconds; None without the condition. It
    matters only to CPU."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The metrics API returned an error, or did not answer."""

    message: str
    answered: bool = False
    """The API answered, and the message says what is wrong with the answer."""


class ResourceSample(NamedTuple):
    """One pod's usage of a resource, from ``metrics.k8s.io``."""

    milli: int
    """Thousandths of a core or byte, summed over the containers that count."""
    time: float
    """Epoch seconds at the end of the window."""
    window: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What the resource metrics API returned, and what the pods request."""

    samples: Mapping[str, ResourceSample]
    """Pod name -> usage."""
    requests: Mapping[str, int]
    """Pod name -> thousandths; it matters only to Utilization targets."""
    problem: str = ""
    """Why the requests are not known, in the controller's words: a container has none."""


Values = Mapping[str, int] | Sequence[int] | int | ResourceUsage | Missing
"""What the metrics API returned, in thousandths. Pods: pod name -> value. External: one value per
series, which are summed. Object: the single value. Resource: :class:`ResourceUsage`. The controller
treats an empty mapping or sequence as an error, like :class:`Missing`."""


class Rule(StrEnum):
    """Which rule of the controller decided what one metric proposes."""

    RATIO = "ratio"
    """The pods that count, times value / target, rounded up."""
    TOLERANCE = "tolerance"
    """Value / target is so close to 1 that nothing changes."""
    TURNED = "turned"
    """The pods without a value turn the direction, or the number, so nothing changes."""
    READY = "ready"
    """The ready pods, times value / target, rounded up."""
    SHARE = "share"
    """The value divided by the target of one pod, rounded up."""
    FROM_ZERO = "from zero"
    """Value / target, rounded up, because there are no replicas."""


@dataclass(frozen=True, slots=True)
class Working:
    """How a metric came to its proposal; all values in thousandths."""

    rule: Rule
    ratio: float
    """Value / target of the pods that have a value."""
    values: Mapping[str, int] | None = None
    """Pod name -> value of each pod that counts; None if the value is not one of pods."""
    total: int = 0
    """The value where it is not one of pods."""
    filled: Mapping[str, int] = field(default_factory=dict)
    """Pod name -> value that the controller assumed for a pod without one."""
    missing: frozenset[str] = frozenset()
    """Pods that run, and have no value."""
    unready: frozenset[str] = frozenset()
    """Pods that are pending, or whose CPU does not count yet."""
    ignored: frozenset[str] = frozenset()
    """Pods that failed or are being deleted."""
    cautious: float | None = None
    """Value / target with the assumed values; None if none was assumed."""
    count: int = 0
    """The pods, or the replicas, that the proposal is computed with."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the controller observes at one sync."""

    replicas: int
    """``spec.replicas`` of the scale target."""
    pods: Sequence[PodState]
    values: Sequence[Values]
    """One entry for each of ``HpaSpec.metrics``, in that order."""
    status_replicas: int | None = None
    """``status.replicas`` of the scale target; None if it equals ``replicas``."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The result of one metric."""

    metric: str
    """The name in the controller's events: ``pods metric gpu_utilization``."""
    replicas: int | None
    """None if the metric is invalid."""
    usage: int | None
    """The current value in thousandths, as in ``status.currentMetrics`` (an average for
    AverageValue targets). None if the metric is invalid, or the average is over no replicas."""
    error: str = ""
    """Why the metric is invalid."""
    working: Working | None = None
    """How the replicas came about; None if the metric is invalid."""
