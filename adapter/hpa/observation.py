"""The input of one sync (the scale target, its pods, the metrics' values), and proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Missing:
    """The metrics API returned an error, or did not answer."""

    message: str


Values = Mapping[str, int] | Sequence[int] | int | Missing
"""What the metrics API returned, in thousandths. Pods: pod name -> value. External: one value per
series, which are summed. Object: the single value. The controller treats an empty mapping or
sequence as an error, like :class:`Missing`."""


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
