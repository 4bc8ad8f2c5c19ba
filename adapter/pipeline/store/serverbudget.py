"""Bound the memory for the series of server pages: per pod, per namespace and in total.

Exporters need no such budget: their number of devices and the samples per device are bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain

from adapter.pipeline.devices.state import ExporterState

_SERIES_BYTES = 3072
"""Upper bound of the bytes of a series besides its samples."""
_SHARE = 16
"""One pod may use this fraction (1/16) of the budget."""


def weight(exporter: ExporterState | None) -> int:
    """Return the estimated bytes of an exporter's series."""
    if exporter is None:
        return 0
    live = (series.history for series in exporter.all_series.values())
    histories = chain(live, exporter.earlier.gone.values())
    return sum(_SERIES_BYTES + 8 * (len(h.times) + len(h)) for h in histories)


class ServerBudget:
    """The memory in use.

    Args:
        size: bytes for all server pages.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._namespaces: dict[str, dict[str, int]] = {}
        """Namespace -> origin -> bytes."""
        self._of: dict[str, str] = {}
        """Origin -> its namespace."""
        self._used: Counter[str] = Counter()
        """Namespace -> bytes."""
        self.used = 0
        """Bytes in use."""

    def admit(self, after: ExporterState, evict: Callable[[str], None]) -> bool:
        """Make room for a page's series, which replace the earlier ones; return False if
        impossible.

        One namespace cannot take the memory of another: if the budget is used up, the namespace
        that
        uses most has to release memory to those that use less.

        Args:
            after: the page's series.
            evict: forgets an origin; it calls :meth:`drop`.
        """
        origin, heavy = after.origin, weight(after)
        namespace = after.pod.namespace if after.pod else ""
        if self._of.get(origin) != namespace:
            self.drop(origin)  # another pod may have had this address
        more = heavy - self._namespaces.get(namespace, {}).get(origin, 0)
        if heavy > self._size // _SHARE:
            return False
        while self.used + more > self._size:
            victim = self._surplus(namespace, self._used[namespace] + more)
            if victim is None:
                return False
            evict(victim)
        self.drop(origin)
        self._of[origin] = namespace
        self._namespaces.setdefault(namespace, {})[origin] = heavy
        self._used[namespace] += heavy
        self.used += heavy
        return True

    def _surplus(self, namespace: str, needed: int) -> str | None:
        """Return an origin whose namespace, without it, still uses as much as ``namespace``
        needs."""
        most = max(self._used, key=self._used.__getitem__, default=namespace)
        if most == namespace:
            return None
        origins = self._namespaces[most]
        heaviest = max(origins, key=origins.__getitem__)
        return heaviest if self._used[most] - origins[heaviest] >= needed else None

    def drop(self, origin: str) -> None:
        """Release the memory of an origin."""
        namespace = self._of.pop(origin, None)
        if namespace is None:
            return
        size = self._namespaces[namespace].pop(origin)
        self._used[namespace] -= size
        self.used -= size
        if not self._namespaces[namespace]:
            del self._namespaces[namespace], self._used[namespace]
