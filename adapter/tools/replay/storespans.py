"""Read what a store has of an HPA, its pods and their devices, one span of time after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapter.hpa import HpaSpec
from adapter.pipeline.exposition.podspellings import EXPORTED, POD
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.tools.replay import neededseries as series
from adapter.tools.replay.neededseries import NeededSeries, ResourceNames, selector
from adapter.tools.replay.storequeries import StoredSeries, StoredSpan, StoreQueries

Matchers = Mapping[str, str | Sequence[str]]
"""Label -> value, or regular expressions of which one matches."""
MOST_BYTES: Final = 48 << 20
"""Bytes of all answers about one span. A shorter span has fewer."""
_INSTANCE: Final = "instance"
_NAMESPACES: Final = (*POD.namespaces, *(EXPORTED + label for label in POD.namespaces))
"""Labels of a pod's namespace on what an exporter says of its GPU."""
_MOST_NAMED: Final = 200
"""Exporters that a query names. With more, it asks for all."""


@dataclass(frozen=True, slots=True)
class StoreRange:
    """What to read from a store."""

    options: PrometheusOptions
    """Address, login and limits."""
    start: float
    """Epoch seconds."""
    end: float
    names: NeededSeries
    settings: Mapping[str, Any]
    """The settings that values depend on."""
    scrape_interval: float
    resources: ResourceNames
    exact: bool = False
    """Query each series by its own name."""


class SpanReader:
    """Reads spans. An exporter is read from the span on in which it first names a pod of the HPA's
    namespace."""

    def __init__(self, queries: StoreQueries, wanted: StoreRange, spec: HpaSpec) -> None:
        self._queries = queries
        self._wanted = wanted
        self._more = wanted.options.matchers
        self._spec = spec
        self._exporters: dict[str, str | None] = {}
        """Origin -> ``instance``; None without one."""
        self._bytes = 0
        """Of the answers about this span."""

    async def read(self, start: float, end: float) -> Mapping[str, StoredSpan]:
        """Return the series of ``hpa``, ``owners``, ``requests``, ``pods`` and ``devices``.

        Raises:
            SourceError: the store failed, or its answers are above a limit.
        """
        self._bytes = 0
        where = {"namespace": self._spec.namespace}
        hpa = {**where, "horizontalpodautoscaler": self._spec.name}
        gpus = {"resource": self._wanted.resources.matchers}
        spans = {
            "hpa": await self._read(series.STATUS, hpa, start, end),
            "owners": await self._read((series.OWNERS,), where, start, end),
            "requests": await self._read((series.REQUESTS,), gpus, start, end),
        }
        namespaces = {"namespace": self._namespaces(spans["requests"])}
        spans["pods"] = await self._read(series.PODS, namespaces, start, end)
        spans["devices"] = StoredSpan()
        if spans["pods"].all_series:
            spans["devices"] = await self._devices(start, end)
        return spans

    async def _devices(self, start: float, end: float) -> StoredSpan:
        names = self._wanted.names
        span = await self._read_all(names.own, {}, start, end)
        for row in span.all_series:
            if row.origin not in self._exporters and self._names_namespace(row):
                self._exporters[row.origin] = row.labels.get(_INSTANCE)
        if names.others and self._exporters:
            instances = {instance for instance in self._exporters.values() if instance is not None}
            several = None in self._exporters.values() or len(instances) > _MOST_NAMED
            where = {} if several else {_INSTANCE: sorted(map(_literal, instances))}
            _add(span, await self._read_all(names.others, where, start, end))
        span.all_series = [row for row in span.all_series if row.origin in self._exporters]
        if names.servers:
            matchers = {"namespace": self._spec.namespace}
            _add(span, await self._read_all(names.servers, matchers, start, end))
        for label in _NAMESPACES if names.sizes else ():
            matchers = {label: self._spec.namespace}
            _add(span, await self._read_all(names.sizes, matchers, start, end))
        return span

    def _names_namespace(self, row: StoredSeries) -> bool:
        return self._spec.namespace in row.labels.values()

    async def _read_all(
        self, names: Sequence[str], where: Matchers, start: float, end: float
    ) -> StoredSpan:
        if not self._wanted.exact:
            return await self._read(names, where, start, end)
        span = StoredSpan()
        for name in names:
            _add(span, await self._read((name,), where, start, end))
        return span

    async def _read(
        self, names: Sequence[str], where: Matchers, start: float, end: float
    ) -> StoredSpan:
        span = await self._queries.read(selector(names, where, self._more), start, end)
        self._bytes += span.size
        if self._bytes > MOST_BYTES:
            raise SourceError(
                "too_large",
                f"the answers about {end - start:g} s have over {MOST_BYTES >> 20} MiB; select one "
                "cluster with source.prometheus.matchers in --config",
            )
        return span

    def _namespaces(self, requests: StoredSpan) -> list[str]:
        """Return the namespaces whose pods may share a GPU with those of the HPA."""
        rows = [row.labels for row in requests.all_series]
        own = self._spec.namespace
        nodes = {labels.get("node") for labels in rows if labels.get("namespace") == own} - {None}
        others = {labels.get("namespace", "") for labels in rows if labels.get("node") in nodes}
        return sorted({own, *others})

    def pods(self, spans: Mapping[str, StoredSpan]) -> list[StoredSeries]:
        """Return the series of the HPA's namespace, and of the pods elsewhere that have a GPU."""
        own = self._spec.namespace
        requests = spans["requests"].all_series
        holders = {row.labels.get("uid") for row in requests}
        return [
            row
            for row in (*spans["pods"].all_series, *requests)
            if row.labels.get("namespace") == own or row.labels.get("uid") in holders
        ]


def _add(to: StoredSpan, more: StoredSpan) -> None:
    to.all_series += more.all_series
    to.rejects += more.rejects
    to.partial = to.partial or more.partial


def _literal(text: str) -> str:
    """Return the regular expression of a text: an address has dots and brackets."""
    return "".join(sign if sign.isalnum() or sign in "_:-/" else f"\\{sign}" for sign in text)
