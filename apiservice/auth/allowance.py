"""A rate limit on the reviews that unauthenticated clients may cause.

Each review is a request to the kube-apiserver under this server's own account. Without a limit,
anyone who reaches the port could use up that account's share of the API server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

_SENDERS: Final = 4096
"""Senders remembered. A sender that was evicted starts with a full allowance."""


class Allowance:
    """A token bucket for each sender.

    Args:
        rate: reviews per second.
        burst: reviews at once after a pause.
    """

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._left: LRUCache[str, tuple[float, float]] = LRUCache(_SENDERS)
        """Sender -> reviews left, and the time of that count."""
        self.refused = 0
        """Reviews that were refused."""

    def take(self, sender: str) -> bool:
        """Return whether the sender may cause one more review now."""
        now = self._clock()
        left, since = self._left.get(sender, (float(self.burst), now))
        left = min(float(self.burst), left + max(0.0, now - since) * self.rate)
        allowed = left >= 1
        self._left[sender] = (left - 1 if allowed else left, now)
        self.refused += not allowed
        return allowed
