"""Measure how far a store's clock is ahead, from ``Date`` of its answers (RFC 9110, 6.6.1).

Samples carry the store's times. If its clock is ahead, the age of a sample is understated, and an
old sample would count as new until our clock catches up. So the adapter subtracts the difference
from the samples' times. It never adds to them: an answer from a cache also has an old date, and
if the store's clock is behind, its samples only appear older than they are.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

log = structlog.get_logger(__name__)

_NOISE: Final = 2.0
"""Seconds that are ignored: a date has whole seconds, and answers take time."""
_ROUNDED: Final = 1.0
"""Seconds by which a date may be below the time that it states."""


class EngineClock:
    """The clock of one store.

    Args:
        url: the store's name in the log.
        clock: our clock, epoch seconds.
    """

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self._url = url
        self._clock = clock
        self._logged = False
        self.ahead = 0.0
        """Seconds subtracted from samples' times: the least by which the store is ahead.

        It changes rarely, so that a sample which is seen twice has one time.
        """

    def note_date(self, date: str | None, age: str | None = None) -> None:
        """Use the ``Date`` of an answer that arrives now; without one nothing changes.

        An answer with an ``Age`` comes from a cache (RFC 9111, 5.1), so its date is ignored.
        """
        if age not in (None, "0"):
            return
        try:
            stamped = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, OverflowError):
            return
        ahead = stamped - self._clock()
        if ahead + _ROUNDED > self.ahead or ahead + _ROUNDED < self.ahead - _NOISE:
            self.ahead = ahead + _ROUNDED if ahead > _NOISE else 0.0
        self._log(ahead)

    def _log(self, ahead: float) -> None:
        """Log once that the clocks differ, and once that they agree again."""
        apart = abs(ahead) > _NOISE + _ROUNDED
        if apart == self._logged:
            return
        self._logged = apart
        if apart:
            hint = "have both machines keep their clocks by NTP"
            log.warning("clocks differ", url=self._url, ahead_seconds=round(ahead), hint=hint)
        else:
            log.info("clocks agree again", url=self._url)
