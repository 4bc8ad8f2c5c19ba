"""What a Prometheus makes of a page, and what its query API answers about it.

The labels follow ``mutateSampleLabels`` in Prometheus' ``scrape/scrape.go``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from apiservice.runtime.steps import at_once
from tests.adapter.world import World

TARGET: Mapping[str, str] = {
    "namespace": "gpu-operator",
    "pod": "nvidia-dcgm-exporter-x7k2p",
    "container": "nvidia-dcgm-exporter",
    "service": "nvidia-dcgm-exporter",
    "endpoint": "gpu-metrics",
    "job": "nvidia-dcgm-exporter",
    "instance": "10.0.0.7:9400",
}
"""As a ServiceMonitor sets them."""


class Prometheus:
    """Stores pages and answers range selectors, for one adapter."""

    def __init__(self, catalog: Catalog, *, honor: bool, lookback: float = 120.0) -> None:
        self._catalog = catalog
        self._honor = honor
        self._lookback = lookback
        self._memo = SeriesMemo()
        self._stored: dict[str, tuple[dict[str, str], list[tuple[float, str]]]] = {}

    def scrape(self, page: str, time: float, target: Mapping[str, str] = TARGET) -> None:
        """Store a page's samples."""
        read = parse(page.encode(), time=time, wanted=self._catalog.series)
        for name, labels, value, at in read.samples:
            stored = {"__name__": name, **relabelled(labels, target, honor=self._honor)}
            key = json.dumps(stored, sort_keys=True)
            self._stored.setdefault(key, (stored, []))[1].append((at, repr(value)))

    def answer(self, world: World, now: float) -> None:
        """Hand everything within the lookback over, by exporter, as the source does."""
        answers = [
            decode(self._body(name, now), self._memo, QueryGroup(name, (name,)))
            for name in sorted({stored["__name__"] for stored, _ in self._stored.values()})
        ]
        for answer in answers:
            at_once(answer.accept())
        self._memo.turn()
        for origin in sorted({origin for answer in answers for origin in answer.samples}):
            rows = [row for answer in answers for row in answer.samples.get(origin, ())]
            world.store.ingest(ScrapeResult(origin, None, rows, now))

    def _body(self, name: str, now: float) -> bytes:
        result: list[object] = []
        for stored, samples in self._stored.values():
            seen = [(at, text) for at, text in samples if now - self._lookback < at <= now]
            if stored["__name__"] == name and seen:
                result.append({"metric": stored, "values": seen})
        data = {"resultType": "matrix", "result": result}
        return json.dumps({"status": "success", "data": data}).encode()


def relabelled(
    labels: Mapping[str, str], target: Mapping[str, str], *, honor: bool
) -> dict[str, str]:
    """The labels of a stored sample; empty ones are not stored."""
    made = {name: value for name, value in labels.items() if value}
    for name, value in target.items():
        if honor:
            made.setdefault(name, value)
            continue
        if name in made:
            made["exported_" + name] = made[name]
        made[name] = value
    return made


def behind(world: World, pages: Sequence[tuple[str, float]], *, honor: bool) -> World:
    """A world that read the pages from a Prometheus, each soon after it was scraped."""
    engine = Prometheus(world.catalog, honor=honor)
    for page, time in pages:
        engine.scrape(page, time)
        engine.answer(world, time)
    return world
