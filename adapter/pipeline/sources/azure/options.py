"""How a Log Analytics workspace is queried. The settings take their defaults from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AzureLogsOptions:
    """Options of the source. Durations in seconds."""

    workspace: str
    """ID of the workspace."""
    lookback: float
    """Age of the oldest records to query: the age limit."""
    endpoint: str = "https://api.loganalytics.io"
    interval: float = 60.0
    timeout: float = 30.0
    """Of one query."""
    cluster: str | None = None
    """The cluster to query, if several share the workspace."""
    ca_file: Path | None = None
