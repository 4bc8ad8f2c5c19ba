"""What a value promises."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.settings.types import Interval, Section
from adapter.validity import RatioScale


class ValueSettings(Section):
    """What a served value promises."""

    window: Annotated[Interval, Field(le=3600)] = 30
    """Seconds that utilisation is averaged over, up to an hour and to 720 scrapes. Every scrape
    in it is held in memory: 8 bytes a field of a device."""
    collect_interval: Interval = 30
    """Seconds between the exporters' own readings (dcgm-exporter's ``--collect-interval``)."""
    age_limit: Interval | None = None
    """Seconds after which a reading is left out; None is twice ``collect_interval`` plus the
    scrape interval."""
    cross_checks: bool = True
    """Leave out what a device's other fields contradict: utilisation of 0 while its engines
    are active, or high at idle power; profiling counters stuck at 0 while it is busy."""
    include_unready: bool = False
    """Serve pods that are not Ready too, such as one still loading its model."""
    ratio_scale: RatioScale = RatioScale.AUTO
    """What exporters mean by ``DCGM_FI_DEV_*_UTIL_RATIO``: ``ratio`` is 0-1 (DCGM 4.7),
    ``percent`` 0-100 (DCGM 4.6), ``auto`` is told from each exporter's numbers."""
