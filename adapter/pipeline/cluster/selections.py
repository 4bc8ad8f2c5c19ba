"""Cached selections of pods."""

from __future__ import annotations

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import Workload
from apiservice.labels.selector import Selector
from apiservice.runtime.bytecache import ENTRY, weight

_MEMO_BYTES = 16 << 20
"""Bytes of cached selections of all namespaces. Those of 5,000 HPAs or ScaledObjects fit, about
3 kB each with 100 pods."""

_Found = tuple[Pod, ...]


class Selections:
    """Cached selections, bounded in bytes; the oldest are evicted.

    A change of a namespace's pods removes that namespace's selections.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[Selector | Workload, _Found]] = {}
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def get(self, namespace: str, key: Selector | Workload) -> _Found | None:
        """Return a cached selection."""
        selections = self._of.get(namespace)
        return selections.get(key) if selections else None

    def keep(self, namespace: str, key: Selector | Workload, pods: _Found) -> None:
        """Cache a selection, unless it is very large."""
        size = _weight(namespace, key, pods)
        if size > _MEMO_BYTES // 8 or self.get(namespace, key) is not None:
            return
        while self.bytes + size > _MEMO_BYTES:
            self._drop_oldest()
        self._of.setdefault(namespace, {})[key] = pods
        self._grow(namespace, size)

    def forget(self, namespace: str) -> None:
        """Remove the selections of a namespace."""
        if self._of.pop(namespace, None):
            self.bytes -= self._sizes.pop(namespace)

    def _drop_oldest(self) -> None:
        namespace, selections = next(iter(self._of.items()))
        key = next(iter(selections))
        self._grow(namespace, -_weight(namespace, key, selections.pop(key)))
        if not selections:
            del self._of[namespace], self._sizes[namespace]

    def _grow(self, namespace: str, size: int) -> None:
        self._sizes[namespace] = self._sizes.get(namespace, 0) + size
        self.bytes += size


def _weight(namespace: str, key: Selector | Workload, pods: _Found) -> int:
    size = key.bytes if isinstance(key, Selector) else weight(key)
    return 2 * ENTRY + size + 8 * len(pods)
