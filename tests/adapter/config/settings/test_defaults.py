"""Each default is written once: default settings make options with their own defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from adapter.config.settings import Settings
from adapter.nodepool.plan.limits import Limits, limits_of
from adapter.pipeline.attribution.policy import SharingOptions
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.sources.azure.options import AzureLogsOptions
from adapter.pipeline.sources.login.port import Anonymous
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.server.serve.build import (
    azure_logs_options,
    prometheus_options,
    scrape_options,
    sharing_options,
    telemetry_options,
)
from adapter.server.serve.run import serving_options
from apiservice.auth import authorization, tokens
from apiservice.http.options import ServingOptions

LOGIN = Anonymous()
PROMETHEUS: dict[str, object] = {
    "source": {"kind": "prometheus", "prometheus": {"url": "https://prometheus"}},
}
AZURE: dict[str, object] = {"source": {"kind": "azure_logs", "azure_logs": {"workspace_id": "w"}}}

CASES: dict[str, tuple[Callable[[Settings], object], dict[str, object], object]] = {
    "the HTTPS listener": (serving_options, {}, ServingOptions()),
    "scraping": (scrape_options, {}, ScrapeOptions(servers=ServerPages())),
    "Prometheus": (
        lambda settings: replace(prometheus_options(settings), lookback=1.0, login=LOGIN),
        PROMETHEUS,
        PrometheusOptions(url="https://prometheus/", lookback=1.0, login=LOGIN),
    ),
    "Log Analytics": (
        lambda settings: replace(azure_logs_options(settings), lookback=1.0),
        AZURE,
        AzureLogsOptions(workspace="w", lookback=1.0),
    ),
    "values": (telemetry_options, {}, TelemetryOptions()),
    "sharing": (sharing_options, {}, SharingOptions()),
    "headroom": (lambda settings: limits_of(settings.nodepool), {}, Limits()),
    "tokens": (lambda settings: settings.authentication.cache, {}, tokens.TTL),
    "rights": (lambda settings: settings.authorization.cache, {}, authorization.TTL),
}


@pytest.mark.parametrize("name", CASES)
def test_default_settings_make_the_options_own_defaults(name: str) -> None:
    options, given, own = CASES[name]
    assert options(Settings.model_validate(given)) == own
