"""When a target is scraped: pure functions of its URL, the clock and its failures."""

from __future__ import annotations

import math
from hashlib import blake2b


def phase(url: str, interval: float) -> float:
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
        failures: failed scrapes in a row; the first is tried again in the next turn, later
            ones after twice the wait each.
        max_backoff: longest wait in seconds, so that a mended exporter is soon noticed.
    """
    wait = 0.0
    if failures > 1:
        doubled = interval * 2.0 ** min(failures - 1, 16)
        # The turn after the wait is up to one interval away.
        wait = max(0.0, min(doubled, max_backoff) - interval)
    turns = math.floor((now + wait - phase) / interval) + 1
    return turns * interval + phase
