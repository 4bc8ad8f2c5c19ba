"""Where a collection's objects come from, as readiness and degraded routes see it."""

from __future__ import annotations

from typing import Protocol


class Feed(Protocol):
    """The other end of a collection: a reflector or a file."""

    @property
    def last_error(self) -> str:
        """Why the objects may be out of date, with the fix; empty while all is well."""

    def age(self, now: float) -> float:
        """Seconds since the origin was last heard from; ``inf`` before the first time."""
