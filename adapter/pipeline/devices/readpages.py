"""What a source knows about the pages that it reads: the port through which absences explain it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from adapter.pipeline.cluster.pod import PodRef


class PageState(NamedTuple):
    """The state of one page's reads. Times are epoch seconds."""

    url: str
    pod: PodRef | None
    """The pod that serves the page, if known."""
    last_success: float
    """0 if the page was never read."""
    error: str
    """Why the last read failed, in one line; empty after a success and before the first read."""
    refused: bool = False
    """The server answered, and not with its page: its address or the credentials are wrong."""
    unknown: bool = False
    """The server answers, and its page has no series that is read."""


class ReadPages(Protocol):
    """The pages that a source reads."""

    @property
    def of_store(self) -> bool:
        """Whether the source queries a store: then scrape jobs elsewhere read the pages."""

    def on_node(self, node: str) -> Sequence[PageState]:
        """Return the pages of exporters that report about a node."""

    def of_pod(self, pod: PodRef) -> Sequence[PageState]:
        """Return the server pages of a pod."""


class _NoPages:
    """A source that knows no pages."""

    def __init__(self, *, of_store: bool) -> None:
        self.of_store = of_store

    def on_node(self, node: str) -> Sequence[PageState]:
        return ()

    def of_pod(self, pod: PodRef) -> Sequence[PageState]:
        return ()


NO_PAGES: ReadPages = _NoPages(of_store=False)
STORED_PAGES: ReadPages = _NoPages(of_store=True)
"""Of a source that queries a store."""
