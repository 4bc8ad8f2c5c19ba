"""The settings for scraping, and the targets that follow from them."""

from __future__ import annotations

import pytest

from adapter.config.settings import Settings
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES
from adapter.server.serve.build import scrape_options

OWN = {"name": "mine", "selector": "app=gpu-exporter", "port": 9400, "namespace": "gpu"}
BUILT_IN = [rule.name for rule in DISCOVERY_RULES]

RULE_CASES = {
    "nothing set": ({}, BUILT_IN),
    "an own rule is tried first": ({"exporters": [OWN]}, ["mine", *BUILT_IN]),
    "without discovery an own rule is the only one": (
        {"exporters": [OWN], "discover": False},
        ["mine"],
    ),
    "without discovery nothing is found": ({"discover": False}, []),
}


@pytest.mark.parametrize("name", RULE_CASES)
def test_exporters_are_found_by_the_configured_rules(name: str) -> None:
    scrape, expected = RULE_CASES[name]
    settings = Settings.model_validate({"source": {"scrape": scrape}})
    assert [rule.name for rule in scrape_options(settings).rules] == expected


def test_every_setting_of_inference_pages_is_used() -> None:
    inference = {
        "prometheus_annotations": True,
        "selector": "app=llm",
        "port_names": ["web"],
        "port": 8000,
        "path": "/stats",
        "scheme": "https",
        "namespaces": ["ml"],
    }
    settings = Settings.model_validate(
        {"source": {"scrape": {"inference": inference}}, "values": {"include_unready": True}}
    )
    pages = scrape_options(settings).servers
    assert pages is not None
    assert pages.selector is not None
    assert pages.selector.matches({"app": "llm"})
    assert (pages.well_known, pages.port_names, pages.port) == (True, ("web",), 8000)
    assert (pages.path, pages.scheme) == ("/stats", "https")
    assert (pages.namespaces, pages.unready) == (frozenset({"ml"}), True)


def test_inference_pages_can_be_switched_off() -> None:
    settings = Settings.model_validate({"source": {"scrape": {"inference": {"enabled": False}}}})
    assert scrape_options(settings).servers is None
