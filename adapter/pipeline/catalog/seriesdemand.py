"""Which series are read although no metric at rest needs them: those that somebody asks for.

The histograms of a server multiply the series of its page. So they are read from the first
question for a metric that needs them, until nobody has asked for :data:`PATIENCE` seconds. The
first value follows with the second page.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.catalog.table import Catalog

PATIENCE: Final = 900.0
"""Seconds: an HPA asks every 15, a dashboard every minute."""


class SeriesDemand:
    """What is asked for. Not thread-safe.

    Args:
        catalog: the series of each metric.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._needed = catalog.on_demand
        self._rest = catalog.series
        self._asked: dict[str, float] = {}
        """Metric -> epoch seconds of the last question."""
        self._since: dict[str, float] = {}
        """Metric -> epoch seconds of the first question."""
        self.series: set[str] = set(catalog.series)
        """Every series name that is read now. It changes: keep no copy."""

    def ask(self, metric: str, now: float) -> None:
        """Note a question for a metric at a time in epoch seconds."""
        needed = self._needed.get(metric)
        if needed is None:
            return
        if metric not in self._asked:
            self._since[metric] = now
            self.series |= needed
        self._asked[metric] = now

    def since(self, metric: str) -> float | None:
        """Return since when (epoch seconds) a metric is asked for; None for other metrics."""
        return self._since.get(metric)

    def forget(self, now: float) -> None:
        """Read no longer what nobody has asked for; the clock may have been set back."""
        if not self._asked:
            return
        silent = [name for name, at in self._asked.items() if abs(now - at) > PATIENCE]
        for name in silent:
            del self._asked[name], self._since[name]
        if silent:
            kept = self._rest.union(*(self._needed[name] for name in self._asked))
            self.series &= kept
