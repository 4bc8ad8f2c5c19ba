"""Log lines when a trigger starts to have no value, and when it has one again."""

from __future__ import annotations

from typing import Final

import structlog
from cachetools import LRUCache

from adapter.answers.keda.trigger import Ref

log = structlog.get_logger(__name__)

_REMEMBERED: Final = 16384
_LONGEST: Final = 1000
"""Characters of a text in the log."""
_LINES: Final = 60
"""Lines about failing triggers in a minute: any client can invent thousands of triggers."""


class Failures:
    """The triggers that currently fail."""

    def __init__(self) -> None:
        self._failing: LRUCache[int, None] = LRUCache(_REMEMBERED)
        """Failing triggers, by :func:`_key`."""
        self._minute = 0
        self._lines = 0

    def begin(self, ref: Ref, reason: str, now: float) -> None:
        """Record that the trigger has no value; ``now`` is epoch seconds."""
        key = _key(ref)
        if key in self._failing:
            return
        self._failing[key] = None
        if now // 60 != self._minute:
            self._minute, self._lines = int(now // 60), 0
        self._lines += 1
        if self._lines < _LINES:
            log.warning("trigger has no value", **_log_fields(ref), reason=reason[:_LONGEST])
        elif self._lines == _LINES:
            log.warning(
                "many triggers have no value; further ones are not logged in this minute",
                hint="gma_keda_calls_total counts them all",
            )

    def end(self, ref: Ref) -> None:
        """Record that the trigger has a value."""
        if self._failing and (key := _key(ref)) in self._failing:
            del self._failing[key]
            log.info("trigger has a value again", **_log_fields(ref))


def _key(ref: Ref) -> int:
    """Return the key of one trigger. Its texts may be long, and are not kept."""
    return hash((ref.namespace, ref.name, frozenset(ref.metadata.items())))


def _log_fields(ref: Ref) -> dict[str, str]:
    names = {"namespace": ref.namespace, "name": ref.name, "metric": ref.metadata.get("metric", "")}
    return {key: text[:_LONGEST] for key, text in names.items()}
