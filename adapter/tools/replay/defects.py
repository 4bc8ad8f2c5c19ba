"""Defects of what a replay reads: stretches of time with something missing, by reason. Bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from adapter.figures import age, count
from adapter.server.recording.events import Stretch

MOST: Final = 1000
"""Stretches of one reason that are kept; more are counted."""
_SHOWN: Final = 4
"""Stretches of one reason in a text."""
_SHORT: Final = 60.0
"""Seconds below which a stretch is only counted in a text."""

NOT_KNOWN: Final = "not_known"
NO_PODS: Final = "no_pods"
NO_VALUE: Final = "no_value"
SILENT: Final = "exporter_silent"
SPARSE: Final = "sparse_samples"
OTHER_NAME: Final = "other_name"
RESET: Final = "counter_reset"
CLOCK: Final = "clock_back"
SATURATED_TIME: Final = "saturated"
"""Not a defect of the recording: the demand is known from below only."""
_TEXTS: Final[Mapping[str, str]] = {
    "damaged": "the recording cannot be read",
    "no_cluster_state": "the pods are not known, because a series of them has no sample",
    "partial_answer": "the store answered in part, and the answer is left out",
    NOT_KNOWN: "nothing was recorded",
    NO_PODS: "the workload had no pod",
    NO_VALUE: "no pod had a value",
    "no_page_recorded": "pods without a value, and no page of an exporter on their node",
    SILENT: "no page of an exporter",
    SPARSE: "samples are far apart (a store that downsamples, or another --scrape-interval)",
    OTHER_NAME: "an exporter writes the metric under another name",
    RESET: "a counter began again",
    CLOCK: "the clock was set back, or is wrong",
    SATURATED_TIME: "the pods did as much as they can",
}


class Defects:
    """Collects stretches. Those of one reason that touch, and are about the same, become one."""

    def __init__(self) -> None:
        self._by_reason: dict[str, list[Stretch]] = {}
        self.more: Counter[str] = Counter()
        """Reason -> stretches beyond :data:`MOST`."""

    def add(self, stretch: Stretch) -> None:
        """Add a stretch. Those of one reason are added in the order of time."""
        spans = self._by_reason.setdefault(stretch.reason, [])
        if spans and spans[-1].about == stretch.about and stretch.start <= spans[-1].end:
            end = max(spans[-1].end, stretch.end)
            spans[-1] = spans[-1]._replace(end=end)
        elif len(spans) < MOST:
            spans.append(stretch)
        else:
            self.more[stretch.reason] += 1

    def __iter__(self) -> Iterator[Stretch]:
        """Yield all stretches, by reason."""
        for some in self._by_reason.values():
            yield from some

    def lines(self) -> Iterator[str]:
        """Yield a line of text for each reason."""
        for reason, some in self._by_reason.items():
            text = _TEXTS.get(reason, f"pods without a value ({reason})")
            long = [span for span in some if span.end - span.start >= _SHORT or reason in _POINTS]
            shown = [_text(span) for span in long[:_SHOWN]]
            rest = len(some) - len(shown) + self.more[reason]
            if rest:
                seconds = sum(span.end - span.start for span in some)
                more = "more" if shown else count(rest, "time")
                shown.append(f"{rest} {more}" if shown else more)
                text += f" for {age(seconds)} in all" if reason not in _POINTS else ""
            yield f"{text}: {', '.join(shown)}"


_POINTS: Final = frozenset((OTHER_NAME, RESET, CLOCK, "damaged"))
"""Reasons that are about a moment rather than a time."""


def _text(stretch: Stretch) -> str:
    start, end = _minute(stretch.start), _minute(stretch.end)
    if start[:10] == end[:10]:
        end = end[11:]
    about = f" ({stretch.about})" if stretch.about else ""
    return f"{start}{about}" if start.endswith(end) else f"{start} to {end}{about}"


def _minute(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def is_covered(stretch: Stretch, others: Sequence[Stretch]) -> bool:
    """Return whether one of the others is about most of a stretch's time."""
    half = (stretch.end - stretch.start) / 2
    return any(
        min(stretch.end, other.end) - max(stretch.start, other.start) > half for other in others
    )
