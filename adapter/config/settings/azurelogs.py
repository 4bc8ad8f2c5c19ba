"""Settings: the Log Analytics workspace as a source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from adapter.config.settings.cloud import AzureIdentitySettings
from adapter.config.settings.types import ADVANCED, Interval, Seconds, Section, SecureUrl
from adapter.pipeline.sources.azure.options import AzureLogsOptions

_DEFAULTS: Final = AzureLogsOptions(workspace="", lookback=0)


class AzureLogsSettings(Section):
    """Azure Container Insights: GPU records in a Log Analytics workspace. Needs the extra
    ``azure``. AKS does not write these records from Kubernetes 1.25 on."""

    workspace_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,63}$")] | None = None
    """ID of the workspace."""
    cluster: str | None = None
    """Resource ID or name of this cluster. Set it if several clusters share the workspace."""
    interval: Annotated[Interval, ADVANCED] = _DEFAULTS.interval
    """Seconds between two queries. Container Insights writes one value a minute."""
    timeout: Annotated[Interval, ADVANCED] = _DEFAULTS.timeout
    """Seconds that one query may take."""
    delay: Annotated[Seconds, ADVANCED] = 180
    """Seconds until a query finds a measurement; part of the age limit. Measure it by
    ``InsightsMetrics | extend s = ingestion_time() - TimeGenerated``."""
    endpoint: Annotated[SecureUrl, ADVANCED] = SecureUrl(_DEFAULTS.endpoint)
    """Log Analytics API of another Azure cloud, such as ``https://api.loganalytics.us``. Tokens
    are requested for this address."""
    ca_file: Annotated[Path | None, ADVANCED] = None
    """CA of the endpoint's certificate, for a proxy that replaces it."""
    identity: AzureIdentitySettings = AzureIdentitySettings()
