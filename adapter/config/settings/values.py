"""Settings: averaging, age and checks of values."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from adapter.config.settings.types import ADVANCED, Interval, Section
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.validity import RatioScale

_DEFAULTS: Final = TelemetryOptions()


class ValueSettings(Section):
    """How the adapter computes values, and which it leaves out."""

    window: Annotated[Interval, Field(le=3600)] = _DEFAULTS.window
    """Seconds over which utilization is averaged: at most an hour and 720 scrapes, which take 8
    bytes each per field and device."""
    collect_interval: Interval = _DEFAULTS.collect_interval
    """Seconds between two readings of the devices by their exporter (dcgm-exporter's
    ``--collect-interval``)."""
    age_limit: Interval | None = _DEFAULTS.age_limit
    """Seconds after which a value is left out. If not set, twice ``collect_interval`` plus the
    scrape interval."""
    min_requests: Annotated[int, Field(ge=1, le=1_000_000)] = _DEFAULTS.min_requests
    """Fewest requests of which a latency is served."""
    cross_checks: Annotated[bool, ADVANCED] = _DEFAULTS.cross_checks
    """Leave out values that other fields or exporters contradict: zeros on a busy device, and high
    utilization at idle power."""
    include_unready: bool = _DEFAULTS.unready
    """Also serve pods that are not Ready, such as a pod that is loading its model."""
    include_unhealthy: bool = _DEFAULTS.unhealthy
    """Also serve pods with a device that the kubelet reports unhealthy
    (``allocatedResourcesStatus``). If false, a mean leaves it out, and a sum has no value."""
    ratio_scale: Annotated[RatioScale, ADVANCED] = _DEFAULTS.ratio_scale
    """Scale of ``DCGM_FI_DEV_*_UTIL_RATIO``: ``ratio`` is 0-1 (DCGM 4.7), ``percent`` 0-100 (DCGM
    4.6), ``auto`` follows from the numbers of each exporter."""
