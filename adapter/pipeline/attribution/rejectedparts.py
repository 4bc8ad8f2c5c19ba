"""Leave out the value of a whole device where a sample of the pod's own part of it is rejected.

An exporter that looks into containers writes both. They do not replace each other: the device's
value includes the work of other pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.pipeline.attribution.candidate import Candidate
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.split import accounts
from adapter.pipeline.catalog.metric import Metric


class Unused(NamedTuple):
    """A candidate without a part in the value."""

    device: str
    candidate: Candidate
    absence: Absence


def withhold(
    devices: Mapping[str, list[Candidate]],
    unused: Sequence[Unused],
    left: list[Absence],
    metric: Metric,
) -> None:
    """Leave out a device's own value where a sample of the pod's part of it was rejected.

    Args:
        devices: device -> the usable candidates of a pod; changed in place.
        unused: its other candidates.
        left: why they are not used. What the device's own value lacks is removed from it, because
            the rejected sample is the reason.
        metric: what is requested.
    """
    if not unused:
        return
    withheld = {
        device
        for device, candidate, _ in unused
        if candidate.series.rejected and _part_rejected(metric, candidate)
    }
    if not withheld:
        return
    for device in withheld:
        devices[device][:] = [candidate for candidate in devices[device] if candidate.on_subject]
    beside = {
        id(absence)
        for device, candidate, absence in unused
        if device in withheld and candidate.measured is not None and not candidate.on_subject
    }
    left[:] = [absence for absence in left if id(absence) not in beside]


def _part_rejected(metric: Metric, candidate: Candidate) -> bool:
    """Return whether a number was left out that measures the pod's own part of the device."""
    series, accounting = candidate.series, candidate.context.accounting
    fields = {field for formula in metric.formulas for field in formula.fields}
    return any(accounts(series, name, accounting) for name in fields & series.rejected)
