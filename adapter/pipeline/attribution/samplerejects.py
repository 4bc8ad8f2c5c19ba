"""Say in a pod's reason which of its samples were left out, and which error its device reports.

A count of rejects helps nobody who asks about one pod. So what is remembered of a reject, with its
device, becomes the detail of the absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isnan
from typing import Final

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.unnamedpods import SAMPLES_REJECTED
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.rejects import Reject, RejectCount
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState

XID: Final = "DCGM_FI_DEV_XID_ERRORS"
_XIDS: Final = {48: "double-bit ECC error", 79: "GPU has fallen off the bus"}
"""Errors after which a device has no values (NVIDIA, "XID Errors")."""
_LISTED: Final = 3


class SampleRejects:
    """The rejects that are remembered with their device.

    Args:
        catalog: which series belong to which field.
        recent: the rejects, oldest first.
        oldest: the age limit in seconds; older rejects explain nothing.
    """

    def __init__(
        self, catalog: Catalog, recent: Mapping[Reject, RejectCount], oldest: float
    ) -> None:
        self._catalog = catalog
        self._recent = recent
        self._oldest = oldest

    def explain(
        self, absence: Absence, metric: Metric, all_series: Iterable[DeviceSeries], now: float
    ) -> Absence:
        """Return the absence with what is known of the samples of its devices.

        Args:
            absence: of a pod whose devices are known.
            metric: the metric without a value.
            all_series: the device series that name the pod.
            now: epoch seconds.
        """
        fields = {field for formula in metric.formulas for field in formula.fields}
        causes: dict[str, None] = {}
        for series in all_series:
            for reject, count in self._of_device.get(series.device.id, ()):
                if reject.series and self._fields.get(reject.series) not in fields:
                    continue
                if now - count.time < self._oldest:
                    causes[_words(reject, count)] = None
            if (error := self._xid(series)) is not None:
                causes[error] = None
        if not causes:
            return absence
        detail = "; ".join(filter(None, (absence.detail, *list(causes)[:_LISTED])))
        return replace(absence, detail=detail)

    @cached_property
    def _of_device(self) -> Mapping[str, Sequence[tuple[Reject, RejectCount]]]:
        rejects: dict[str, list[tuple[Reject, RejectCount]]] = {}
        for reject, count in self._recent.items():
            if reject.device:
                rejects.setdefault(reject.device, []).append((reject, count))
        return rejects

    @cached_property
    def _fields(self) -> Mapping[str, str]:
        return {s.name: s.field.name for s in self._catalog.spellings.values()}

    def _xid(self, series: DeviceSeries) -> str | None:
        reported = self._catalog.metrics[XID].read(series)
        if reported is None or not reported.value:
            return None
        code = int(reported.value)
        meaning = f" ({_XIDS[code]})" if code in _XIDS else ""
        return f"device {series.device.id} reports XID {code}{meaning}"


def rejected_samples(pod: PodRef, exporters: Iterable[ExporterState]) -> Absence | None:
    """Return that samples name a pod and that all of them were left out; None if none name it."""
    for exporter in exporters:
        reason = exporter.rejected.get(pod)
        if reason is not None:
            detail = f"{reason} on {exporter.origin}"
            return Absence(SAMPLES_REJECTED, detail, exporter=exporter.pod)
    return None


def _words(reject: Reject, count: RejectCount) -> str:
    number = "" if isnan(count.value) else f" {count.value:g}"
    what = f"{reject.series}{number}" if reject.series else f"device {reject.device}"
    return f"{what} was left out as {reject.reason}"
