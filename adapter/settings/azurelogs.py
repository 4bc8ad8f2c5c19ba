"""Asking a Log Analytics workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from adapter.settings.cloud import AzureIdentitySettings
from adapter.settings.types import Interval, Seconds, Section, SecureUrl


class AzureLogsSettings(Section):
    """Azure Container Insights: GPU rows of a Log Analytics workspace; needs the extra
    ``azure``. AKS feeds them no more from Kubernetes 1.25 on."""

    workspace_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,63}$")] | None = None
    """Id of the workspace."""
    cluster: str | None = None
    """Resource id or name of this cluster, where several share the workspace."""
    interval: Interval = 60
    """Seconds between two queries; Container Insights writes one value a minute."""
    timeout: Interval = 30
    """Seconds one query may take."""
    delay: Seconds = 180
    """Seconds until a row can be read after it was measured; part of the age limit. 20 s to 3 min
    on average, says Azure Monitor, "Log data ingestion time in Azure Monitor"; its table gives
    the time of your own: ``InsightsMetrics | extend s = ingestion_time() - TimeGenerated``."""
    endpoint: SecureUrl = SecureUrl("https://api.loganalytics.io")
    """Log Analytics of another cloud, such as ``https://api.loganalytics.us``; tokens are for
    it too."""
    ca_file: Path | None = None
    """CA of the endpoint, where a proxy replaces its certificate; None trusts the usual."""
    identity: AzureIdentitySettings = AzureIdentitySettings()
