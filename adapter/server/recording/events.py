"""The events of a recording, in the order in which ``serve`` saw them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult


class Begun(NamedTuple):
    """A recorder started. What earlier events said about the cluster is no longer known."""

    time: float
    """Epoch seconds, as in every event."""
    settings: Mapping[str, Any]
    """The settings that values depend on, as in a configuration file."""


class PageRead(NamedTuple):
    """A source delivered the samples of one exporter or server."""

    time: float
    result: ScrapeResult


class PodSeen(NamedTuple):
    """A pod was added, changed or deleted."""

    time: float
    pod: Pod
    gone: bool = False


class NodeSeen(NamedTuple):
    """A node was added, changed or deleted."""

    time: float
    node: Node
    gone: bool = False


class HpaSeen(NamedTuple):
    """An HPA was added, changed or deleted. The controller writes its status at a sync."""

    time: float
    hpa: ShownHpa
    gone: bool = False
    until: float | None = None
    """If given, the change was between ``time`` and this. Such an event comes before the others of
    that span."""


class Stretch(NamedTuple):
    """A time for which something is missing, or is not what it seems. Nothing fills it in."""

    start: float
    end: float
    reason: str
    """One of a fixed set of words."""
    about: str
    """What it concerns, such as an exporter; empty for everything."""


class Missed(NamedTuple):
    """What was read has a defect."""

    time: float
    stretch: Stretch


Event = Begun | PageRead | PodSeen | NodeSeen | HpaSeen | Missed


@dataclass(slots=True)
class Losses:
    """What a reader of a recording left out. Nothing is left out in silence."""

    lines: dict[str, int] = field(default_factory=dict)
    """Reason -> lines that could not be read."""
    damaged: int = 0
    """Stretches of the file that cannot be read, as a recorder that was killed leaves."""

    def count(self, reason: str) -> None:
        """Count a line that could not be read."""
        self.lines[reason] = self.lines.get(reason, 0) + 1


class Recording(Protocol):
    """A stored stream of events, which can be read any number of times."""

    @property
    def losses(self) -> Losses:
        """What the last reading left out."""

    def events(self) -> Iterator[Event]:
        """Yield the events, oldest first.

        Raises:
            RecordingError: it cannot be read at all.
        """


class RecordingError(Exception):
    """A recording cannot be read or written; one line that names the file and the fix."""
