"""Candidates: the value of one device for a pod or a node, before it becomes part of a reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.pipeline.attribution.policy import SharingPolicy
from adapter.pipeline.attribution.reading import Attribution, DeviceReading, device_labels
from adapter.pipeline.attribution.sharing import Share
from adapter.pipeline.attribution.split import (
    Allocation,
    NodeContext,
    allocation,
    is_exact,
    part_of_request,
)
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import DeviceValue, Metric, Statistic
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.series import DeviceSeries


class Containers:
    """Implements :class:`adapter.pipeline.catalog.metric.DeviceData`: the sum over containers of
    one device.

    The containers' shares are measured one after the other, so their sum may exceed the whole
    device. It is limited to the field's range. Its time is that of its oldest part.

    Args:
        all_series: of one device, one per container.
    """

    def __init__(self, all_series: Sequence[DeviceSeries]) -> None:
        self._all_series = all_series

    @property
    def mig(self) -> bool:
        """Whether the device is a MIG instance."""
        return self._all_series[0].mig

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """Return the sum over containers; for a field that is not the container's own, the
        newest."""
        values = [
            s for series in self._all_series if (s := series.value_of(field, what)) is not None
        ]
        if not values:
            return None
        newest = max(values, key=lambda measured: measured.time)
        kind = self._field(field)
        if kind is None or not kind.exact:
            return newest
        total = min(sum(measured.value for measured in values), kind.high)
        return newest._replace(value=total, time=min(measured.time for measured in values))

    def newest(self, field: str) -> DeviceValue | None:
        """Return the newest of the containers' samples."""
        samples = [s for series in self._all_series if (s := series.newest(field)) is not None]
        return max(samples, key=lambda sample: sample.time, default=None)

    def reports(self, field: str) -> bool:
        """Return whether an exporter of one of the series writes samples of this field."""
        return any(series.reports(field) for series in self._all_series)

    def is_incomplete(self, field: str) -> bool:
        """Return False: a device has no parts that are not read."""
        return False

    def _field(self, name: str) -> Field | None:
        for series in self._all_series:
            layout = series.history.layout
            for column in layout.of_field.get(name, ()):
                return layout.columns[column].field
        return None


class Candidate(NamedTuple):
    """What one device series says about one device."""

    series: DeviceSeries
    measured: DeviceValue | None
    shared: bool
    share: Share | None
    """The pods that share the device, if known."""
    allocation: Allocation | str | None
    """The pod's part, or the reason why it has none, or None without a value."""
    context: NodeContext
    on_subject: bool
    """Whether the value measures what is requested: a pod's own processes, or the device itself."""

    def rank(self) -> tuple[bool, bool, float, float]:
        """Sort key of one device's candidates: on_subject, of the board itself, newest, largest."""
        value, time = (self.measured.value, self.measured.time) if self.measured else (0.0, 0.0)
        return self.on_subject, not self.series.mig, time, value

    def labels(self, metric: Metric) -> dict[str, str]:
        """Return the known labels for ``metric.selector``, with values that a selector can name."""
        device, how = self.series.device, self._how(metric)
        return device_labels(device, self._model, self._container, how, shared=self.shared)

    def reading(self) -> DeviceReading:
        """Return the device's part of a reading; the candidate must have a value and a part."""
        measured, part, share = self.measured, self.allocation, self.share
        assert measured is not None and isinstance(part, Allocation)  # noqa: S101, PT018 - see above
        return DeviceReading(
            of=self.series.device,
            model=self._model,
            container=self._container,
            value=part.value,
            time=measured.time,
            formula=measured.series,
            attribution=part.how,
            policy=self.context.policy.value if self.shared else "",
            evidence=share.evidence.value if share else "",
            sharers=len(share.pods) if share else 1,
            increase=measured.increase,
        )

    @property
    def _model(self) -> str:
        return self.series.device.model or self.context.facts.model

    @property
    def _container(self) -> str:
        assignment = self.series.assignment
        return "" if assignment is None else assignment.container

    def _how(self, metric: Metric) -> Attribution:
        if isinstance(self.allocation, Allocation):
            return self.allocation.how
        if not self.shared:
            return Attribution.EXACT
        split = metric.divisible and self.context.policy in (
            SharingPolicy.EQUAL,
            SharingPolicy.MEMORY,
        )
        return Attribution.SPLIT if split else Attribution.COPIED


def candidate(
    metric: Metric,
    series: DeviceSeries,
    measured: DeviceValue | None,
    pod: Pod | None,
    context: NodeContext,
) -> Candidate:
    """Return a device's candidate for a pod; ``pod`` None means the device as a whole."""
    share = context.sharing.shares_of(pod).get(series.device.id) if pod is not None else None
    shared = series.shared or share is not None
    part: Allocation | str | None = None
    on_subject = False
    if measured is not None:
        on_subject = is_exact(series, measured, context.accounting) is (pod is not None)
        if pod is None or not shared:
            how = Attribution.COPIED if shared else _whole_attribution(series, pod)
            part = Allocation(measured.value, how)
        else:
            part = allocation(metric, measured, series, share, pod, context)
        if metric.of_request and isinstance(part, Allocation):
            part = part_of_request(part, pod, series, context.facts, shared=shared)
    return Candidate(series, measured, shared, share, part, context, on_subject)


def _whole_attribution(series: DeviceSeries, pod: Pod | None) -> Attribution:
    """Return how a pod's value follows from that of a device which no other pod has."""
    named = pod is None or series.assignment is not None
    return Attribution.EXACT if named else Attribution.DERIVED


def device_candidate(candidates: Sequence[Candidate], metric: Metric, pod: Pod | None) -> Candidate:
    """Return one device's candidate; if each container has its own value, their sum.

    Args:
        candidates: usable candidates of one device, at least one.
        metric: the metric.
        pod: None for the device as a whole.
    """
    if len(candidates) == 1:
        return candidates[0]
    best = max(candidates, key=Candidate.rank)
    assignment = best.series.assignment
    if assignment is None or not best.series.own:
        return best
    containers: dict[tuple[PodRef, str], Candidate] = {}
    for usable in sorted(candidates, key=Candidate.rank):
        if usable.series.own and usable.series.assignment is not None:
            containers[usable.series.assignment.pod, usable.series.assignment.container] = usable
    measured = metric.read(Containers([usable.series for usable in containers.values()]))
    if len(containers) == 1 or measured is None:
        return best
    series = replace(best.series, assignment=assignment._replace(container=""))
    return candidate(metric, series, measured, pod, best.context)
