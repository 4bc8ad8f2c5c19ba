"""An exporter to be scraped, and how that has gone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from adapter.cluster.pod import PodRef

Scheme = Literal["http", "https"]
"""Protocol of a page."""
STATIC: Final = "static"
"""In place of a discovery rule, of a target at a fixed address."""


class ScrapeTarget(NamedTuple):
    """Where one exporter's page is."""

    url: str
    node: str | None = None
    """The node it reports about, where that is certain."""
    pod: PodRef | None = None
    """The exporter's own pod."""
    uid: str = ""
    """That pod's uid: a new pod at an old address is a new target."""
    rule: str = STATIC
    """The discovery rule that found it."""
    serves: bool = False
    """The page is the pod's own, an inference server's: it is about nothing else."""

    @property
    def namespace(self) -> str:
        """Of the pod; empty where that is not known."""
        return self.pod.namespace if self.pod else ""


def page_url(scheme: str, ip: str, port: int, path: str) -> str:
    """The address of a pod's page."""
    host = f"[{ip}]" if ":" in ip else ip
    return f"{scheme}://{host}:{port}{path}"


@dataclass(slots=True)
class TargetState:
    """How scraping a target has gone, for metrics and doctor. Times are epoch seconds."""

    target: ScrapeTarget
    scrapes: int = 0
    failures: int = 0
    """Failed scrapes in a sample."""
    last_attempt: float = 0.0
    due: float = 0.0
    """When the next scrape is to be made."""
    last_success: float = 0.0
    last_error: str = ""
    """What went wrong last time; empty after a success."""
    reason: str = ""
    """The same in one word."""
    duration: float = 0.0
    """Seconds that the last scrape took."""
    samples: int = 0
    """Samples of the last good page."""
    size: int = 0
    """Bytes of the last page, decompressed."""
    held: int = 0
    """Bytes that the label sets of the last page take at most."""
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines of the last page that were left out, by reason."""


def phase_of(url: str, interval: float) -> float:
    """Seconds into every interval at which this target's turn is.

    A hash of the URL: targets spread evenly, replicas of the adapter and restarts agree.
    """
    digest = blake2b(url.encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64 * interval


def due(now: float, phase: float, interval: float, failures: int, max_backoff: float) -> float:
    """Epoch seconds of the next scrape, at the target's phase.

    Args:
        now: epoch seconds.
        phase: seconds into the interval.
        interval: seconds between scrapes.
        failures: failed scrapes in a sample; the first is tried again in the next turn, later
            ones after twice the wait each.
        max_backoff: longest wait in seconds, so that a repaired exporter is soon noticed.
    """
    wait = 0.0
    if failures > 1:
        doubled = interval * 2.0 ** min(failures - 1, 16)
        # The turn after the wait is up to one interval away.
        wait = max(0.0, min(doubled, max_backoff) - interval)
    turns = math.floor((now + wait - phase) / interval) + 1
    return turns * interval + phase
