"""Decide which scrape results change only numbers, so that they can be taken in later.

:mod:`adapter.pipeline.devices.steadypages` compares a page with the one before. Here is what else
the result of a page depends on: the other pods and the labels of the node, and other exporters
that report the same devices.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from adapter.pipeline.attribution.nodecontext import ClusterContext, Stamp
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.rejects import Rejects
from adapter.pipeline.devices.series import Doubt
from adapter.pipeline.devices.state import ExporterState
from adapter.pipeline.devices.steadypages import SteadyPages, steady
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.index import OriginIndex

_DOUBTS: Final = frozenset(doubt.value for doubt in Doubt)
"""Rejects that follow from the numbers of each page."""


class _Known(NamedTuple):
    """What the next page of an exporter is compared with."""

    node: str
    stamp: Stamp
    """Of the node."""
    pages: SteadyPages
    left_out: Counter[str]
    """Samples of each page that are left out because of their labels, by reason."""


class Deferral:
    """The exporters whose next page may be taken in later.

    Args:
        devices: which exporters report a device.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: TelemetryOptions,
        cluster: ClusterContext,
        devices: OriginIndex[str],
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._cluster = cluster
        self._devices = devices
        self._known: dict[str, _Known] = {}

    def note(self, after: ExporterState, result: ScrapeResult, rejects: Rejects) -> None:
        """Note a scrape result that was taken in, and what was rejected of it."""
        self.drop(after.origin)
        if after.plan is None:
            return
        left_out = Counter(after.plan.left_out)
        # Other rejects may depend on other pods or on other exporters.
        if (rejects.totals - Counter(result.rejects) - left_out).keys() - _DOUBTS:
            return
        pages = steady(after, result, self._catalog, self._options)
        if pages is not None and result.node:
            stamp = self._cluster.stamp(result.node)
            self._known[after.origin] = _Known(result.node, stamp, pages, left_out)

    def drop(self, origin: str) -> None:
        """Take the origin's next page in at once."""
        self._known.pop(origin, None)

    def after(
        self, before: ExporterState, result: ScrapeResult, rejects: Rejects
    ) -> ExporterState | None:
        """Return the state after a scrape result; None if it must be taken in at once.

        Args:
            rejects: counts what is left out of a result that can be taken in later.
        """
        known = self._known.get(result.origin)
        if known is None or known.stamp != self._cluster.stamp(known.node):
            return None
        if self._devices.contested(before.outline.devices):
            return None
        found = known.pages.after(before, result, self._cluster.pod, rejects)
        if found is None:
            return None
        after, pages = found
        if pages is not known.pages:
            self._known[result.origin] = known._replace(pages=pages)
        for counts in (result.rejects, known.left_out):
            for reason, times in counts.items():
                rejects.count(reason, times)
        return after
