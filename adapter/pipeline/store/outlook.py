"""The port to what was learned of workloads, and the readings of metrics that are expected."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.pod import Pod
from apiservice.labels.selector import Selector

UNKNOWN: Final = "expectation_unknown"


class MeasuredValues(Protocol):
    """Values at one point in time."""

    def pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """Return a metric's value for a pod over the selected devices, or why there is none."""


class Rise(NamedTuple):
    """How far the value of a pod may rise until a replica created now is Ready."""

    more: float
    """In the unit of the metric, not below 0."""
    text: str
    """What it is based on, for people."""


class Outlook(Protocol):
    """What is known of the next minutes of workloads."""

    def rise(self, values: MeasuredValues, pod: Pod, metric: str, now: float) -> Rise | Absence:
        """Return how far a pod's value of a measured metric may rise, or why that is unknown.

        Args:
            values: the present ones.
            now: epoch seconds.
        """


class NoOutlook:
    """Nothing is learned."""

    def rise(self, values: MeasuredValues, pod: Pod, metric: str, now: float) -> Rise | Absence:
        """Return that it is unknown."""
        return Absence(UNKNOWN, "ahead.enabled is false")


NO_OUTLOOK: Final = NoOutlook()


def expected_reading(measured: Reading, metric: Metric, rise: Rise) -> Reading:
    """Return the reading of an expected metric: the measured one, and how far it may rise."""
    most = measured.value + rise.more
    if metric.high is not None:
        most = max(measured.value, min(most, metric.high))
    return Reading(
        value=most,
        time=measured.time,
        window=measured.window,
        expires=measured.expires,
        devices=measured.devices,
        partial=measured.partial,
        left_out=measured.left_out,
        note=rise.text,
    )
