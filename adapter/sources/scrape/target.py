"""An exporter to be scraped, and how that has gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.cluster.pod import PodRef

STATIC: Final = "static"
"""In place of a discovery rule, of a target at a fixed address."""


class Target(NamedTuple):
    """Where one exporter's page is."""

    url: str
    node: str | None = None
    """The node it reports about, where that is certain."""
    pod: PodRef | None = None
    """The exporter's own pod."""
    uid: str = ""
    """That pod's uid: a new pod at an old address is a new target."""
    rule: str = STATIC
    """The discovery rule that found it."""
    serves: bool = False
    """The page is the pod's own, an inference server's: it is about nothing else."""

    @property
    def namespace(self) -> str:
        """Of the pod; empty where that is not known."""
        return self.pod.namespace if self.pod else ""


def page_url(scheme: str, ip: str, port: int, path: str) -> str:
    """The address of a pod's page."""
    host = f"[{ip}]" if ":" in ip else ip
    return f"{scheme}://{host}:{port}{path}"


@dataclass(slots=True)
class TargetState:
    """How scraping a target has gone, for metrics and doctor. Times are epoch seconds."""

    target: Target
    scrapes: int = 0
    failures: int = 0
    """Failed scrapes in a row."""
    last_attempt: float = 0.0
    due: float = 0.0
    """When the next scrape is to be made."""
    last_success: float = 0.0
    last_error: str = ""
    """What went wrong last time; empty after a success."""
    reason: str = ""
    """The same in one word."""
    duration: float = 0.0
    """Seconds that the last scrape took."""
    rows: int = 0
    """Rows of the last good page."""
    size: int = 0
    """Bytes of the last page, decompressed."""
    held: int = 0
    """Bytes that the label sets of the last page take at most."""
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines of the last page that were left out, by reason."""
