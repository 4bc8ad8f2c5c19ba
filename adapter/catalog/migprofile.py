"""What one compute instance of a MIG profile can reach by DCGM's engine counter.

DCGM counts the graphics engines of an instance that are active. A process runs in one
compute instance and keeps one of them busy, so that a ``2g`` profile tops out at 0.5 and a
``3g`` profile at 0.33, while ``1g`` and a whole GPU reach 1.0 (DCGM#138, measured on A100).
"""

from __future__ import annotations

from typing import Final

from adapter.catalog import ENGINE
from adapter.catalog.metric import DeviceValue, Metric, Unit

_TOPS: Final = {"1g": 1.0, "2g": 1 / 2, "3g": 1 / 3}
_ROUNDING: Final = 1.02
"""0.34 of a third is rounding; more is a second compute instance."""
_FULL: Final = 100.0


def normalized(measured: DeviceValue, metric: Metric, profile: str) -> DeviceValue:
    """Engine activity in percent, in relation to what the profile allows.

    Left as it is where the profile's limit is not known, where the sample exceeds it, and
    under the exporter's own names: those are verbatim.
    """
    top = _TOPS.get(profile.partition(".")[0])
    if top is None or top == 1.0 or measured.field != ENGINE or metric.unit is not Unit.PERCENT:
        return measured
    value = measured.value / top
    if value > _FULL * _ROUNDING:
        return measured
    return measured._replace(value=min(value, _FULL), series=f"{measured.series}/{profile}")
