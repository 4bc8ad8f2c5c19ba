"""A scrape target, the state of its scrapes, and when the next is due (interval, back-off)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.sources.scrape.pageaccess import DEFAULT, PageAccess

Scheme = Literal["http", "https"]
"""Protocol of a page."""
STATIC: Final = "static"
"""The rule name of a target at a fixed address."""
_TOGETHER: Final = 0.1
"""Seconds between the times at which scrapes begin."""
_LEAST_PHASES: Final = 10
"""Such times in an interval, at least."""


class ScrapeTarget(NamedTuple):
    """The address of one page."""

    url: str
    node: str | None = None
    """The node that it reports about, if certain."""
    pod: PodRef | None = None
    """The exporter's own pod."""
    uid: str = ""
    """That pod's UID: a new pod at an old address is a new target."""
    rule: str = STATIC
    """The discovery rule that found it."""
    serves: bool = False
    """The page is a server page, about its own pod only."""
    access: PageAccess = DEFAULT

    @property
    def namespace(self) -> str:
        """The pod's namespace; empty if it is not known."""
        return self.pod.namespace if self.pod else ""


def page_url(scheme: str, ip: str, port: int, path: str) -> str:
    """Return the URL of a pod's page."""
    host = f"[{ip}]" if ":" in ip else ip
    return f"{scheme}://{host}:{port}{path}"


@dataclass(slots=True)
class TargetState:
    """The state of a target's scrapes, for metrics and readiness. Times are epoch seconds."""

    target: ScrapeTarget
    failures: int = 0
    """Failed scrapes in succession."""
    due: float = 0.0
    """When the next scrape is due."""
    last_success: float = 0.0
    last_error: str = ""
    """The error of the last scrape; empty after a success."""
    reason: str = ""
    """The reason of the last error, in one word."""
    samples: int = 0
    """Samples of the last good page."""
    held: int = 0
    """Upper bound of the bytes of the last page's label sets."""
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines of the last page that were left out, by reason."""


def phase_of(url: str, interval: float) -> float:
    """Return the second of every interval at which the target is scraped.

    It is a hash of the URL, so targets are spread evenly, and replicas and restarts agree. It is a
    multiple of a tenth of a second, or of a tenth of an interval below a second: pages that are
    read one after another cost up to a third less than pages with pauses between them.
    """
    digest = blake2b(url.encode(), digest_size=8).digest()
    together = min(_TOGETHER, interval / _LEAST_PHASES)
    return math.floor(int.from_bytes(digest) / 2**64 * interval / together) * together


def due(now: float, phase: float, interval: float, failures: int, max_backoff: float) -> float:
    """Return the epoch seconds of the next scrape, at the target's phase.

    Args:
        failures: failed scrapes in succession. The first is retried after one interval; each
            further failure doubles the wait.
        max_backoff: longest wait in seconds, so that a repaired exporter is soon noticed.
    """
    wait = 0.0
    if failures > 1:
        doubled = interval * 2.0 ** min(failures - 1, 16)
        # The turn after the wait is up to one interval away.
        wait = max(0.0, min(doubled, max_backoff) - interval)
    turns = math.floor((now + wait - phase) / interval) + 1
    return turns * interval + phase
