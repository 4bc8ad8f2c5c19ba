"""One entry of the timeline."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
EntryKind = Literal["scale", "exporter", "node", "gpu", "hpa", "pod", "panel"]
EntryLevel = Literal["info", "good", "warning", "bad"]


class About(NamedTuple):
    """The object that an entry leads to."""

    kind: Literal["hpa", "pod", "node", "gpu"]
    namespace: str
    name: str
    shown: str = ""
    """How the text names it; empty: by its own name."""


class TimelineEntry(NamedTuple):
    """Something that happened."""

    time: float
    """Epoch seconds."""
    kind: EntryKind
    level: EntryLevel
    text: str
    about: About | None = None
    reason: str = ""

    def json(self) -> Json:
        """The row of the page."""
        about = None if self.about is None else self.about._asdict()
        return {**self._asdict(), "about": about}
