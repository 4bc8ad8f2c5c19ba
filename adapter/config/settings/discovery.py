"""The rules for exporters and for server pages, from the settings."""

from __future__ import annotations

from adapter.config.settings import Settings
from adapter.config.settings.pageaccess import page_access
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES, DiscoveryRule
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from apiservice.labels.selector import parse


def exporter_rules(settings: Settings) -> tuple[DiscoveryRule, ...]:
    """Return the rules that find exporters, the user's before the built-in ones."""
    scrape = settings.source.scrape
    user_rules = tuple(
        DiscoveryRule(
            rule.name,
            parse(rule.selector),
            rule.port,
            path=rule.path,
            scheme=rule.scheme,
            access=page_access(rule.tls_config, rule),
            namespace=rule.namespace,
        )
        for rule in scrape.exporters
    )
    return (*user_rules, *DISCOVERY_RULES) if scrape.discover else user_rules


def server_pages(settings: Settings) -> ServerPages | None:
    """Return which pods have a server page; None if the adapter scrapes no inference servers."""
    inference = settings.source.scrape.inference
    if not inference.enabled or settings.source.kind != "scrape":
        return None
    return ServerPages(
        well_known=inference.prometheus_annotations,
        selector=None if inference.selector is None else parse(inference.selector),
        port_names=inference.port_names,
        port=inference.port,
        path=inference.path,
        scheme=inference.scheme,
        access=page_access(inference.tls_config),
        namespaces=frozenset(inference.namespaces),
        unready=settings.values.include_unready,
    )
