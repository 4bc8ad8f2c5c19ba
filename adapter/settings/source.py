"""Where values come from."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from adapter.settings.prometheus import PrometheusSettings
from adapter.settings.scrape import ScrapeSettings
from adapter.settings.types import Section


class SourceSettings(Section):
    """Where GPU values come from."""

    kind: Literal["scrape", "prometheus"] = "scrape"
    """``scrape`` reads the exporters directly; ``prometheus`` asks a query API."""
    scrape: ScrapeSettings = ScrapeSettings()
    prometheus: PrometheusSettings = PrometheusSettings()

    @model_validator(mode="after")
    def _url(self) -> SourceSettings:
        if self.kind == "prometheus" and self.prometheus.url is None:
            raise ValueError(
                "kind prometheus needs prometheus.url, e.g. http://prometheus.monitoring.svc:9090"
            )
        return self
