"""Settings: the source of values."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from adapter.config.settings.prometheus import PrometheusSettings
from adapter.config.settings.scrape import ScrapeSettings
from adapter.config.settings.types import Section


class SourceSettings(Section):
    """The source of GPU values."""

    kind: Literal["scrape", "prometheus"] = "scrape"
    """``scrape`` reads the exporters directly. ``prometheus`` queries a Prometheus API."""
    scrape: ScrapeSettings = ScrapeSettings()
    prometheus: PrometheusSettings = PrometheusSettings()

    @model_validator(mode="after")
    def _url(self) -> SourceSettings:
        if self.kind == "prometheus" and self.prometheus.url is None:
            raise ValueError(
                "kind prometheus needs prometheus.url (--prometheus-url), e.g. "
                "http://prometheus.monitoring.svc:9090"
            )
        return self
