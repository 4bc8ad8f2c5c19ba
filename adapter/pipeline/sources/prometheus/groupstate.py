"""The state of one query group: failures, last answer and warnings, for metrics and the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from adapter.figures import join_names
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup

log = structlog.get_logger(__name__)

_UNNAMED: Final = (
    "aggregations and functions drop __name__: keep it with by (__name__, ...), or set it with "
    'label_replace(..., "__name__", "SERIES", "", "")'
)
_NOTHING: Final = "run the query by hand: the series does not exist, or not for this tenant"


_OF_THE_QUERY: Final = frozenset(("query", "result_type", "partial", "too_large", "internal"))


@dataclass(slots=True)
class GroupState:
    """Times are epoch seconds."""

    group: QueryGroup
    query: str
    queries: int = 0
    failures: int = 0
    """Failed rounds in succession."""
    last_success: float = 0.0
    last_error: str = ""
    reason: str = ""
    logged: str = ""
    """The reason that was last logged."""
    samples: int = 0
    """Samples in the last good answer."""
    warnings: tuple[str, ...] = ()
    """The engine's remarks on the last good answer."""
    partial: bool = False
    """Whether the last good answer lacked existing series."""
    unnamed: int = 0
    """Series in the last good answer without a metric name."""
    last: QueryAnswer | None = None
    """The answer of the last round; it contains the newest samples of the last good one."""

    @property
    def complaint(self) -> str:
        """Return what is wrong with a good answer; empty if nothing is."""
        group = self.group.name
        if self.unnamed:
            return f"query.{group}: {self.unnamed} series without a name; {_UNNAMED}"
        if self.partial:
            return f"group {group}: a partial answer: {'; '.join(self.warnings[:2])[:300]}"
        return ""

    def note_success(self, answer: QueryAnswer, now: float) -> None:
        """Record a good answer."""
        group, first = self.group.name, not self.last_success
        if answer.warnings != self.warnings:
            log.warning("query warnings", group=group, warnings=answer.warnings[:5])
        unnamed = answer.rejects["unnamed_series"]
        if unnamed and not self.unnamed:
            log.warning("query drops the metric's name", group=group, hint=_UNNAMED)
        samples = answer.count
        if self.group.query is not None and not (samples or unnamed) and (first or self.samples):
            log.warning("query gives no series", group=group, hint=_NOTHING)
        self.partial, self.unnamed = answer.partial, unnamed
        self.failures, self.last_error, self.reason = 0, "", ""
        self.warnings, self.samples, self.last_success = answer.warnings, samples, now

    def note_failure(self, error: SourceError) -> None:
        """Record a round without an answer."""
        self.failures += 1
        self.reason, self.last_error = error.reason, str(error)

    @property
    def cause(self) -> tuple[str, str]:
        """The cause of the failure; equal for groups that fail because of the engine."""
        return self.reason, self.group.name if self.reason in _OF_THE_QUERY else ""


def log_changes(states: Iterable[GroupState]) -> None:
    """Log which groups have failed or recovered since the last call, one line per cause."""
    failing: defaultdict[tuple[str, str], list[GroupState]] = defaultdict(list)
    back = []
    for state in states:
        if state.reason and state.reason != state.logged:
            failing[state.cause].append(state)
        elif state.logged and not state.reason:
            back.append(state.group.name)
        state.logged = state.reason
    for some in failing.values():
        names = [state.group.name for state in some]
        log.warning("query failed", groups=join_names(names), error=some[0].last_error)
    if back:
        log.info("query answered again", groups=join_names(back))
