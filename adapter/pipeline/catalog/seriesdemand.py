"""Which series are read although no metric at rest needs them: those that somebody asks for.

The histograms of a server multiply the series of its page. So they are read from the first
question for a metric that needs them, until nobody has asked for :data:`PATIENCE` seconds. The
first value follows with the second page.

A question is about pods of one namespace, and only their pages are read for it: the question
costs the shares of that namespace, and makes no page of another one larger.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from adapter.pipeline.catalog.table import Catalog

PATIENCE: Final = 900.0
"""Seconds: an HPA asks every 15, a dashboard every minute."""
_LOOK: Final = 60.0
"""Seconds between two looks for what nobody asks for any more."""


class SeriesDemand:
    """What is asked for. Not thread-safe.

    Args:
        catalog: the series of each metric.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._needed = catalog.on_demand
        self._rest = catalog.series
        self._asked: dict[tuple[str, str], float] = {}
        """Namespace and metric -> epoch seconds of the last question."""
        self._since: dict[tuple[str, str], float] = {}
        """Namespace and metric -> epoch seconds of the first question."""
        self._own: dict[str, frozenset[str]] = {}
        """Namespace -> the series that are read of its pods, those at rest included."""
        self._looked = 0.0
        self.series: set[str] = set(catalog.series)
        """Every series name that is read now, for a store, whose answers are about all namespaces.
        It changes: keep no copy."""

    def always(self, metrics: Iterable[str]) -> None:
        """Read the series of these metrics although nobody asks: a recording has them."""
        series = frozenset[str]().union(*(self._needed.get(metric, ()) for metric in metrics))
        self._rest |= series
        self.series |= series

    def of(self, namespace: str) -> Container[str]:
        """Return the series that are read of the pods of a namespace."""
        return self._own.get(namespace, self._rest)

    def ask(self, metric: str, namespace: str, now: float) -> None:
        """Note a question for a metric of pods of a namespace, at a time in epoch seconds."""
        needed = self._needed.get(metric)
        if needed is None:
            return
        question = namespace, metric
        if question not in self._asked:
            self._since[question] = now
            self._own[namespace] = self._own.get(namespace, self._rest) | needed
            self.series |= needed
        self._asked[question] = now

    def since(self, metric: str, namespace: str) -> float | None:
        """Return since when (epoch seconds) a metric is asked for; None for other metrics."""
        return self._since.get((namespace, metric))

    def forget(self, now: float) -> None:
        """Read no longer what nobody has asked for; the clock may have been set back."""
        if not self._asked or abs(now - self._looked) < _LOOK:
            return
        self._looked = now
        silent = [key for key, moment in self._asked.items() if abs(now - moment) > PATIENCE]
        for key in silent:
            del self._asked[key], self._since[key]
        if not silent:
            return
        self._own = {}
        for namespace, metric in self._asked:
            series = self._own.get(namespace, self._rest)
            self._own[namespace] = series | self._needed[metric]
        self.series &= self._rest.union(*self._own.values())
