"""How exporters and server pages are scraped. The settings take their defaults from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES, DiscoveryRule
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import ScrapeTarget


@dataclass(frozen=True, slots=True)
class ScrapeOptions:
    """Options of the source. Durations in seconds, sizes in bytes."""

    interval: float = TelemetryOptions().scrape_interval
    timeout: float = 3.0
    """Of one scrape."""
    rules: tuple[DiscoveryRule, ...] = DISCOVERY_RULES
    """Discovery rules. The first match counts. Without rules, no exporter is discovered."""
    servers: ServerPages | None = None
    """Which pods have a server page. None scrapes no server page."""
    targets: tuple[ScrapeTarget, ...] = ()
    """Exporters at fixed addresses."""
    concurrency: int = 64
    """Exporters scraped at the same time. As many server pages are scraped at the same time."""
    max_bytes: int = 16 << 20
    """Largest page of an exporter, after decompression."""
    server_max_bytes: int = 1 << 20
    """Largest server page, after decompression."""
    label_bytes: int = 128 << 20
    """Memory for the label sets of all exporters."""
    server_label_bytes: int = 32 << 20
    """Memory for the label sets of all server pages."""
    max_backoff: float = 60.0
    """Longest pause between two scrapes of an exporter that fails."""
    ca_file: Path | None = None
    """CA of exporters that use HTTPS. None trusts the system's CAs."""
    bearer_token_file: Path | None = None
    """Token for every exporter, so discovered pods see it. It is never sent to server pages."""
