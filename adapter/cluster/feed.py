"""The interface of a collection's origin, as readiness sees it: last error and age."""

from __future__ import annotations

from typing import Protocol


class Feed(Protocol):
    """The origin of a collection: a reflector or a file."""

    @property
    def last_error(self) -> str:
        """Why the objects may be out of date, with the fix. Empty if they are current."""

    def age(self, now: float) -> float:
        """Seconds since the origin was last heard from; ``inf`` before the first time."""
