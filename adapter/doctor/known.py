"""What the adapter knows with these settings: exporters' rules, server pages, metrics."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.catalog import Catalog
from adapter.catalog.metric import Scope, Unit
from adapter.settings import Settings
from adapter.sources.scrape.discovery import DISCOVERY_RULES, DiscoveryRule
from adapter.sources.scrape.serverpages import ServerPages
from apiservice.labels.selector import parse

CATALOG: Final = Catalog()


class KnownMetric(NamedTuple):
    """A metric that the adapter serves."""

    unit: Unit
    scope: Scope | None
    """None for a user's own metric that does not say it."""


def exporter_rules(settings: Settings) -> tuple[DiscoveryRule, ...]:
    """Return the rules that find exporters, in order."""
    scrape = settings.source.scrape
    own = tuple(
        DiscoveryRule(
            rule.name,
            parse(rule.selector),
            rule.port,
            path=rule.path,
            scheme=rule.scheme,
            namespace=rule.namespace,
        )
        for rule in scrape.exporters
    )
    return (*own, *DISCOVERY_RULES) if scrape.discover else own


def server_pages(settings: Settings) -> ServerPages | None:
    """Return which pods have a server page; None if inference servers are not scraped."""
    inference = settings.source.scrape.inference
    if not inference.enabled:
        return None
    return ServerPages(
        well_known=inference.prometheus_annotations,
        selector=None if inference.selector is None else parse(inference.selector),
        port_names=inference.port_names,
        port=inference.port,
        path=inference.path,
        scheme=inference.scheme,
        namespaces=frozenset(inference.namespaces),
        unready=settings.values.include_unready,
    )


def metrics(settings: Settings) -> Mapping[str, KnownMetric]:
    """Return the metrics that the adapter serves, by name."""
    own = {
        name: KnownMetric(row.unit, row.scope)
        for row in settings.metrics
        for name in (row.name, row.name.lower())
    }
    return _BUILT_IN | own


_BUILT_IN: Final = {
    name: KnownMetric(each.unit, each.scope) for name, each in CATALOG.metrics.items()
}


def nearest(name: str, settings: Settings) -> str:
    """Return the metric's name that resembles a name most; empty if none does."""
    own = [row.name for row in settings.metrics]
    for names in ((*own, *_NEUTRAL), tuple(CATALOG.principal)):
        folded = {_folded(each): each for each in names}
        close = difflib.get_close_matches(_folded(name), folded, n=1, cutoff=0.7)
        if close:
            return folded[close[0]]
    return ""


_NEUTRAL: Final = tuple(metric.name for metric in CATALOG.neutral)


def _folded(name: str) -> str:
    return name.lower().replace("-", "_").replace("utilisation", "utilization")
