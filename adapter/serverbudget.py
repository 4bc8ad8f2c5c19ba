"""Memory for what pods' own pages leave in the store, per pod and in all.

Exporters have no such budget: one is bounded by its number of devices, and each device by its
number of samples.
"""

from __future__ import annotations

from adapter.exporter import Exporter

_SERIES_BYTES = 3072
"""What a series takes at most beside its samples."""
_SHARE = 16
"""The part of the budget that one pod may use."""


def weight(exporter: Exporter | None) -> int:
    """Bytes that the series of an exporter take, estimated."""
    if exporter is None:
        return 0
    histories = (track.history for track in exporter.tracks.values())
    return sum(_SERIES_BYTES + 8 * (len(h.times) + len(h.values)) for h in histories)


class ServerBudget:
    """The memory in use.

    Args:
        size: bytes for all pods' own pages.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._weights: dict[str, int] = {}
        self.used = 0
        """Bytes in use."""

    def admit(self, after: Exporter) -> bool:
        """Make room for a page's series in place of those before; False if there is none."""
        origin, heavy = after.origin, weight(after)
        used = self.used + heavy - self._weights.get(origin, 0)
        if heavy > self._size // _SHARE or used > self._size:
            return False
        self._weights[origin] = heavy
        self.used = used
        return True

    def drop(self, origin: str) -> None:
        """The series of this origin are gone."""
        self.used -= self._weights.pop(origin, 0)
