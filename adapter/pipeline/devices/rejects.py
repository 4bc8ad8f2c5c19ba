"""Count rejects by reason, and remember a bounded number of them with their device."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

_MAX_RECENT: Final = 1024


class Reject(NamedTuple):
    """A sample or device that was left out."""

    reason: str
    series: str
    """The exporter's series; empty if a whole device was left out."""
    device: str
    """Empty if the sample names none."""


@dataclass(frozen=True, slots=True)
class RejectCount:
    """How often a reject occurred, and its last value."""

    count: int
    value: float
    """As on the page; NaN if the value was not the reason."""
    time: float
    """Epoch seconds."""
    detail: str = ""


class Rejects:
    """Counters since the start, and the most recent rejects."""

    __slots__ = ("recent", "totals")

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        """Reason -> count since the start; never decreases."""
        self.recent: OrderedDict[Reject, RejectCount] = OrderedDict()
        """The most recent rejects with their device, oldest first; at most 1,024."""

    def count(self, reason: str, times: int = 1) -> None:
        """Count rejects without a device."""
        self.totals[reason] += times

    def add(
        self, reject: Reject, time: float, value: float = float("nan"), detail: str = ""
    ) -> None:
        """Count a reject and remember its device."""
        self.totals[reject.reason] += 1
        self._remember(reject, RejectCount(1, value, time, detail))

    def note(self, reject: Reject, time: float) -> None:
        """Remember the device of a reject that is counted already."""
        self._remember(reject, RejectCount(1, float("nan"), time))

    def merge(self, later: Rejects) -> None:
        """Add the rejects of another object."""
        self.totals.update(later.totals)
        for reject, count in later.recent.items():
            self._remember(reject, count)

    def _remember(self, reject: Reject, latest: RejectCount) -> None:
        before = self.recent.pop(reject, None)
        if before is not None:
            latest = replace(latest, count=before.count + latest.count)
        self.recent[reject] = latest
        if len(self.recent) > _MAX_RECENT:
            self.recent.popitem(last=False)
