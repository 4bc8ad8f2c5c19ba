"""The causes of current failures, so that each cause is logged once for many requests."""

from __future__ import annotations


class Outages:
    """The failing watches and loops by cause. One instance for each client of a cluster."""

    def __init__(self) -> None:
        self._failing: dict[object, str] = {}
        """Failing watch or loop -> cause. Bounded by the number of watches and loops."""

    def begins(self, who: object, cause: str) -> bool:
        """Record a failure. Return whether the cause is new, so that the caller logs it."""
        was_known = self.has_cause_in(cause)
        self._failing[who] = cause
        return not was_known

    def ends(self, who: object) -> None:
        """Record that this one no longer fails."""
        self._failing.pop(who, None)

    def has_cause_in(self, text: str) -> bool:
        """Return whether the text names a current cause."""
        return any(cause in text for cause in self._failing.values())
