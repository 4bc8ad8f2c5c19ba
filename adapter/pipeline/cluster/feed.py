"""The origin of a collection, as readiness sees it: last error and age."""

from __future__ import annotations

from typing import Protocol


class Feed(Protocol):
    """The origin of a collection: a reflector or a file."""

    @property
    def last_error(self) -> str:
        """Why the objects may be out of date, with the fix. Empty if they are current."""

    @property
    def rejected(self) -> int:
        """Objects that were left out because they cannot be read or are too large."""

    def age(self, now: float) -> float:
        """Seconds since the origin was last heard from; ``inf`` before the first time."""


class Fed:
    """A collection that a feed keeps up to date."""

    def __init__(self) -> None:
        self._feed: Feed | None = None
        self.version = 0
        """Grows with every change of an object."""
        self.synced = False
        """All objects have been read at least once."""

    def fed_by(self, feed: Feed) -> None:
        """Set the feed whose age and errors this collection reports."""
        self._feed = feed

    @property
    def left_out(self) -> int:
        """Objects that the origin has left out, because they cannot be read or are too large."""
        return self._feed.rejected if self._feed else 0

    def age(self, now: float) -> float:
        """Seconds since the origin was last heard from; ``inf`` if never."""
        return self._feed.age(now) if self._feed else float("inf")
