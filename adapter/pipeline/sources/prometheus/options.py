"""How a Prometheus API is queried. The settings take their defaults from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # the settings need this module, and not an HTTP client
    from adapter.pipeline.sources.login.port import Login


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """Options of the source. Durations in seconds."""

    url: str
    """Base URL with the path prefix, if there is one."""
    lookback: float = 0.0
    """Age of the oldest samples that a source queries: the age limit, and at least two scrapes."""
    interval: float = 15.0
    """Between two rounds. The retries of a group end with the round."""
    timeout: float = 10.0
    """Of one query."""
    retries: int = 2
    """Tries of a query in a round, beyond the first."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Metric group -> PromQL. It replaces the selector made from the series of the group."""
    matchers: str = ""
    """Label matchers that are added to every selector."""
    method: Literal["GET", "POST"] = "POST"
    """How queries are sent. A URL may not be as long as a form."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters that are added to every query."""
    login: Login | None = None
    """Credentials for every query. None sends none."""
    ca_file: Path | None = None
    """CA of the server. None trusts the system's CAs."""
    cert_file: Path | None = None
    """TLS client certificate."""
    key_file: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 256 << 20
    """Largest answer, after decompression."""
