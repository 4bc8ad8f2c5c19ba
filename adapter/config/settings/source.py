"""Settings: the source of values."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from adapter.config.settings.azurelogs import AzureLogsSettings
from adapter.config.settings.prometheus import PrometheusSettings
from adapter.config.settings.scrape import ScrapeSettings
from adapter.config.settings.types import Section


class SourceSettings(Section):
    """The source of GPU values."""

    kind: Literal["scrape", "prometheus", "azure_logs"] = "scrape"
    """``scrape`` reads the exporters directly, ``prometheus`` a Prometheus API, ``azure_logs`` the
    Log Analytics workspace of Azure Container Insights."""
    scrape: ScrapeSettings = ScrapeSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    azure_logs: AzureLogsSettings = AzureLogsSettings()

    @model_validator(mode="after")
    def _check_url(self) -> SourceSettings:
        if self.kind == "prometheus" and self.prometheus.url is None:
            raise ValueError(
                "kind prometheus needs prometheus.url (--prometheus-url), e.g. "
                "http://prometheus.monitoring.svc:9090"
            )
        if self.kind == "azure_logs" and self.azure_logs.workspace_id is None:
            raise ValueError(
                "kind azure_logs needs azure_logs.workspace_id "
                "(GMA_SOURCE__AZURE_LOGS__WORKSPACE_ID)"
            )
        return self
