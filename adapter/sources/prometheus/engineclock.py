"""How far a store's clock is ahead of ours, by the ``Date`` of its answers (RFC 9110, 6.6.1).

Samples carry the store's times. Where its clock is ahead, the age of a sample is understated by
as much: one that nobody renews would pass for new until our clock caught up. So samples are made
older by what the store is ahead. They are never made younger: an answer out of a cache has an
old date too, and where the store is behind, its samples only look older than they are.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

log = structlog.get_logger(__name__)

_NOISE: Final = 2.0
"""Seconds that do not count: a date has whole seconds, and answers take their time."""
_ROUNDED: Final = 1.0
"""Seconds by which a date may be below the time that it tells."""


class EngineClock:
    """One store's clock.

    Args:
        url: what it is called in the log.
        clock: ours, epoch seconds.
    """

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self._url = url
        self._clock = clock
        self._told = False
        self.ahead = 0.0
        """Seconds that samples are made older by: what the store is ahead, at least. It moves
        seldom, so that a sample which is seen twice has one time."""

    def heard(self, date: str | None, age: str | None = None) -> None:
        """Take the ``Date`` of an answer that arrives now; without one nothing changes.

        An answer with an ``Age`` was made earlier and kept in a cache (RFC 9111, 5.1): its date
        says nothing of a clock.
        """
        if age not in (None, "0"):
            return
        try:
            stamped = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, OverflowError):
            return
        seen = stamped - self._clock()
        if seen + _ROUNDED > self.ahead or seen + _ROUNDED < self.ahead - _NOISE:
            self.ahead = seen + _ROUNDED if seen > _NOISE else 0.0
        self._tell(seen)

    def _tell(self, seen: float) -> None:
        """Say once that the clocks differ, and once that they no longer do."""
        apart = abs(seen) > _NOISE + _ROUNDED
        if apart == self._told:
            return
        self._told = apart
        if apart:
            hint = "have both machines keep their clocks by NTP"
            log.warning("clocks differ", url=self._url, ahead_seconds=round(seen), hint=hint)
        else:
            log.info("clocks agree again", url=self._url)
