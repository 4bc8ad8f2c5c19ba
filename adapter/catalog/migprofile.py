"""Normalise engine activity by the maximum of a MIG profile (``sharing.mig_normalization``).

DCGM counts the active graphics engines of an instance. A process runs in one compute instance
and keeps one engine busy. So the maximum is 0.5 for a ``2g`` profile and 0.33 for ``3g``, while
``1g`` and a whole GPU reach 1.0 (DCGM#138, measured on A100).
"""

from __future__ import annotations

from typing import Final

from adapter.catalog import ENGINE
from adapter.catalog.metric import DeviceValue, Metric, Unit

_TOPS: Final = {"1g": 1.0, "2g": 1 / 2, "3g": 1 / 3}
_ROUNDING: Final = 1.02
"""0.34 instead of a third is rounding. More shows a second compute instance."""
_FULL: Final = 100.0


def normalized(measured: DeviceValue, metric: Metric, profile: str) -> DeviceValue:
    """Return engine activity in percent of what the profile allows.

    The value is returned unchanged if the profile's maximum is not known, if the value exceeds
    it, or if the metric has an exporter's own name: such metrics are verbatim.
    """
    top = _TOPS.get(profile.partition(".")[0])
    if top is None or top == 1.0 or measured.field != ENGINE or metric.unit is not Unit.PERCENT:
        return measured
    value = measured.value / top
    if value > _FULL * _ROUNDING:
        return measured
    return measured._replace(value=min(value, _FULL), series=f"{measured.series}/{profile}")
