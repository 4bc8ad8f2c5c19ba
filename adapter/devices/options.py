"""How old a number may be, and over how long it is averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.devices.validity import RatioScale

NODE_SERIES: Final = 1024
"""More than a node has: 16 GPUs with 48 replicas each are 768. It bounds the time that a page
holds the event loop."""
MAX_SAMPLES: Final = 720
"""Kept of one device at the most, one per scrape: an hour at five seconds. With the 25 fields
of dcgm-exporter that is 150 kB a device, 8 bytes a field and sample; the default window of 30 s
needs 1.5 kB."""


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """Seconds, unless said otherwise."""

    window: float = 30.0
    """Utilisation is the mean over this long."""
    collect_interval: float = 30.0
    """How often the exporter asks the device: dcgm-exporter's default."""
    scrape_interval: float = 5.0
    """How often the exporter, or the store behind it, is asked."""
    age_limit: float | None = None
    """No value is older; None means 2 x collect interval + scrape interval."""
    unready: bool = False
    """Serve pods that are not Ready too."""
    ratio_scale: RatioScale = RatioScale.AUTO
    """What ``…_RATIO`` samples mean, where the exporter leaves it in doubt."""
    at_least: float = 0.5
    """The share of a pod's devices that must have a valid reading."""

    server_series: int = 512
    """Parts of the server, and GPUs that it sees, on one pod's own page. More are left out."""
    server_bytes: int = 96 << 20
    """Memory for the samples of all pods' own pages. Pages for which there is none are left out."""
    max_series: int = NODE_SERIES
    """Devices of one exporter, each once per container. More are left out."""

    cross_checks: bool = True
    """Leave out what a device's other fields contradict."""

    @property
    def oldest(self) -> float:
        """The age limit in force."""
        if self.age_limit is not None:
            return self.age_limit
        return 2 * self.collect_interval + self.scrape_interval
