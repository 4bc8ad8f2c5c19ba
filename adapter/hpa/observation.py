"""What the controller sees at one sync, and what one metric makes of it."""

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
    """The Ready condition is True. It matters to Object and External values only: Pods
    metrics count a running pod whether it is ready or not."""
    deleting: bool = False
    """A deletionTimestamp is set."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The metrics API answered with an error, or not at all."""

    message: str


Values = Mapping[str, int] | Sequence[int] | int | Missing
"""What the metrics API said, in thousandths. Pods: pod name -> value. External: one value
per series, which are summed. Object: the one value. An empty mapping or sequence is an
error to the controller, as :class:`Missing` is."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the controller sees at one sync."""

    replicas: int
    """``spec.replicas`` of the scale target."""
    pods: Sequence[PodState]
    values: Sequence[Values]
    """One entry for each of ``HpaSpec.metrics``, in that order."""
    status_replicas: int | None = None
    """``status.replicas`` of the scale target; None where it equals ``replicas``."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one metric asks for."""

    metric: str
    """As the controller names it in events: ``pods metric gpu_utilization``."""
    replicas: int | None
    """None where the metric is invalid."""
    usage: int | None
    """The current value in thousandths as ``status.currentMetrics`` shows it (an average
    for AverageValue targets); None where the metric is invalid, or the average is over
    no replicas."""
    error: str = ""
    """Why the metric is invalid."""
