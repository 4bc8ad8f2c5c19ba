"""Options for values: their age limit, the window, and bounds on what one exporter may report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.pipeline.devices.validity import RatioScale

NODE_SERIES: Final = 1024
"""More than a node has: 16 GPUs with 48 replicas each are 768.

It bounds how long the processing of a page blocks the event loop.
"""
SERVER_PARTS: Final = 512
"""More than a server has: 64 engines of eight models. A gateway counts per flow of its clients."""
MAX_SAMPLES: Final = 720
"""Samples kept per device, one per scrape: an hour at five seconds.

At 8 bytes per field and sample, and with the 25 fields of dcgm-exporter, this is 150 kB per
device. The default window of 30 s needs 1.5 kB.
"""

PAGE_TIMES: Final = 8
"""Times that the page of a pod may give one device; an exporter writes one, if any.

With :data:`MAX_SAMPLES` instead, a dozen pages of 1,024 devices would fill 400 MB.
"""


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """Times are in seconds unless stated otherwise."""

    window: float = 30.0
    """Utilisation is the mean over this time."""
    collect_interval: float = 30.0
    """How often the exporter reads the device; the default of dcgm-exporter."""
    scrape_interval: float = 5.0
    """How often the exporter, or the store in front of it, is queried."""
    age_limit: float | None = None
    """Age limit of values. None means 2 x collect interval + scrape interval."""
    unready: bool = False
    """Also serve pods that are not Ready."""
    unhealthy: bool = True
    """Also serve pods with a device that the kubelet reports unhealthy."""
    ratio_scale: RatioScale = RatioScale.AUTO
    """What ``…_RATIO`` samples mean if the exporter's page does not show it."""
    at_least: float = 0.5
    """The share (0-1) of a pod's devices that must have a valid value."""

    server_series: int = SERVER_PARTS
    """Parts of the server, and GPUs that it sees, on one pod's server page. More are left out.

    Parts of which the catalogue states the labels count apart from those that clients may choose,
    so that these leave room for them.
    """
    server_bytes: int = 96 << 20
    """Memory in bytes for the samples of all server pages. Pages beyond it are left out."""
    max_series: int = NODE_SERIES
    """Devices of one exporter, each counted once per container. More are left out."""

    min_requests: int = 10
    """Requests that a latency needs in its window. From fewer, a quantile is made up."""
    cross_checks: bool = True
    """Leave out values that a device's other fields contradict."""

    @property
    def oldest(self) -> float:
        """The age limit that applies, in seconds."""
        if self.age_limit is not None:
            return self.age_limit
        return 2 * self.collect_interval + self.scrape_interval
