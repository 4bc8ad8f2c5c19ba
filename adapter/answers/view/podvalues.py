"""The values of one pod: which metrics apply to it, and which of them stands for the pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.values import UNKNOWN_METRIC
from adapter.pipeline.catalog.metric import Metric, Scope
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.servermeasures import GATEWAY, gateway_metric
from adapter.pipeline.cluster.optin import has_opted_in
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.labels.selector import EVERYTHING

UTILIZATION: Final = "gpu_utilization"
USED: Final = "gpu_memory_used_bytes"
WAITING: Final = "inference_requests_waiting"
RUNNING: Final = "inference_requests_running"
CACHE: Final = "inference_kv_cache_utilization"
FIRST_TOKEN: Final = f"{Latency.FIRST_TOKEN}_p90"
GATEWAY_WAITING: Final = "inference_gateway_requests_waiting"
GATEWAY_RUNNING: Final = "inference_gateway_requests_running"


class AskedPod(NamedTuple):
    """A pod at one time."""

    snapshot: Snapshot
    pod: Pod
    now: float

    @property
    def serves(self) -> bool:
        """Whether the pod is an inference server that is scraped."""
        return self.snapshot.serves(self.pod.ref)

    @property
    def holds_gpu(self) -> bool:
        """Whether the pod holds a GPU, by its spec or by a sample."""
        return self.snapshot.holds(self.pod)

    def reading(self, metric: str, *, ask: bool = True) -> Reading | Absence:
        """Return the pod's value of a metric, or its absence.

        Args:
            ask: see :meth:`adapter.pipeline.store.snapshot.Snapshot.pod`.
        """
        return self.snapshot.pod(self.pod, metric, EVERYTHING, self.now, ask=ask)

    def value(self, metric: str) -> float | None:
        """Return the pod's number of a metric; None if it is absent."""
        reading = self.reading(metric)
        return reading.value if isinstance(reading, Reading) else None

    def memory(self, busy: Reading | Absence) -> float | None:
        """Return the memory that is used on the pod's devices; None if it is absent.

        If no device of its utilisation is shared or in doubt, the memory is the sum over them.
        This takes a quarter of the time of a reading and gives the same number.

        Args:
            busy: the pod's utilisation.
        """
        metric = self.snapshot.catalog.metrics.get(USED)
        all_series = self.snapshot.series_naming(self.pod.ref)
        if metric is None or isinstance(busy, Absence) or not _is_simple(busy, all_series):
            return self.value(USED)
        total = 0.0
        for series in all_series:
            measured = self.snapshot.current_value(series.after(self.pod.born), metric, self.now)
            if measured is None:
                return self.value(USED)
            total += measured.value
        return total

    def applies(self, metric: Metric) -> bool:
        """Return whether the pod should have a value: it holds a GPU, or it is a server.

        A server whose page was never read has no value of its server, and the reason says why.
        """
        if metric.promised:
            return False  # a value needs a promise, which only a query states
        if metric.scope is not Scope.SERVER:
            return self.holds_gpu
        if metric.on_demand and not self.snapshot.is_asked_for(metric.name, self.pod.namespace):
            return False  # a look at a pod neither starts the reading of histograms nor keeps it up
        if (
            not self.serves
            and not self.snapshot.reads_server(self.pod)
            and not has_opted_in(self.pod)
        ):
            return False
        return not metric.name.startswith(GATEWAY) or self._exports(metric)

    def _exports(self, metric: Metric) -> bool:
        """Return whether the pod's own page has what the metric is computed from."""
        return any(
            formula.is_exported(series)
            for series in self.snapshot.series_naming(self.pod.ref)
            if series.serves
            for formula in metric.formulas
        )

    @property
    def first_token(self) -> float | None:
        """The time to the first token, p90 in seconds; None if absent, or if nobody asks for it."""
        for metric in (FIRST_TOKEN, gateway_metric(FIRST_TOKEN)):
            if self.snapshot.is_asked_for(metric, self.pod.namespace):
                reading = self.reading(metric, ask=False)
                if isinstance(reading, Reading):
                    return reading.value
        return None

    @property
    def waiting(self) -> float | None:
        """The requests that wait in the server, or at the gateway; None if they are absent."""
        waiting = self.value(WAITING)
        return self.value(GATEWAY_WAITING) if waiting is None else waiting

    @property
    def running(self) -> float | None:
        """The requests that the server or the gateway has in progress; None if absent."""
        running = self.value(RUNNING)
        return self.value(GATEWAY_RUNNING) if running is None else running

    def metrics(self) -> Iterator[Metric]:
        """Yield the neutral metrics that apply to the pod."""
        return filter(self.applies, self.snapshot.catalog.neutral)


def _is_simple(busy: Reading, all_series: Sequence[DeviceSeries]) -> bool:
    """Return whether every series of a pod is one whole device that has a part in its value."""
    if busy.left_out or busy.partial or len(all_series) != len(busy.devices):
        return False
    for series, part in zip(all_series, busy.devices, strict=True):
        if series.node is None or series.shared or series.own or part.policy:
            return False
    return True


def principal_reading(asked_pod: AskedPod) -> Reading | Absence:
    """Return the reading that stands for the pod, or the reason why it is not measured.

    This is its utilisation. For a server without a GPU, it is the first of its server's metrics.
    """
    if asked_pod.holds_gpu:
        return asked_pod.reading(UTILIZATION)
    names = (WAITING, RUNNING, CACHE, GATEWAY_WAITING, GATEWAY_RUNNING)
    values = [asked_pod.reading(name) for name in names]
    readings = [value for value in values if isinstance(value, Reading)]
    absences = [value for value in values if isinstance(value, Absence)]
    return readings[0] if readings else absences[0] if absences else Absence(UNKNOWN_METRIC)
