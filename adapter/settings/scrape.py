"""Reading exporters directly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from adapter.settings.types import Interval, LabelSelector, PageUrl, Section


class ExporterRule(Section):
    """Which pods are exporters, and where on them the page is."""

    name: str
    """What the rule is called in logs and metrics."""
    selector: LabelSelector
    """Label selector over pods."""
    port: int | str
    """Container port, by number or name."""
    path: str = "/metrics"
    """Path of the page."""
    scheme: Literal["http", "https"] = "http"
    """How to ask for it."""
    namespace: str | None = None
    """Only pods of this namespace; None means any."""


class StaticTarget(Section):
    """An exporter at a fixed address."""

    url: PageUrl
    """The page's URL."""
    node: str | None = None
    """The node whose GPUs it reports, if known."""


class ScrapeSettings(Section):
    """Direct scraping of exporters."""

    interval: Interval = 5
    """Seconds between two scrapes of one exporter."""
    timeout: Interval = 3
    """Seconds one scrape may take."""
    discover: bool = True
    """Find exporters among the watched pods by the labels of the usual charts."""
    exporters: tuple[ExporterRule, ...] = ()
    """Further discovery rules, tried before the built-in ones."""
    targets: tuple[StaticTarget, ...] = ()
    """Exporters at fixed addresses."""
    concurrency: Annotated[int, Field(ge=1, le=10000)] = 64
    """Scrapes under way at once."""
    max_bytes: Annotated[int, Field(ge=1024)] = 16 * 1024 * 1024
    """Largest page accepted, after decompression."""
    max_backoff: Interval = 60
    """Longest pause, in seconds, between tries of an exporter that keeps failing."""
    ca_file: Path | None = None
    """CA of exporters that speak HTTPS; None trusts the system's."""
    bearer_token_file: Path | None = None
    """Token sent to exporters, read anew for each scrape."""
