"""Index of which exporters report which devices, pods and nodes, shared with readers uncopied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")


class OriginIndex(Generic[K]):
    """Key -> origins. It changes only if an origin's set of keys changes."""

    __slots__ = ("_contested", "_origins", "_shared")

    def __init__(self) -> None:
        self._origins: dict[K, tuple[str, ...]] = {}
        self._contested: dict[K, tuple[str, ...]] = {}
        self._shared = False

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._origins)

    def of(self, key: K) -> tuple[str, ...]:
        """Return the origins that report ``key``."""
        return self._origins.get(key, ())

    def is_any_contested(self, keys: Collection[K]) -> bool:
        """Return whether several origins report one of ``keys``."""
        return bool(self._contested) and not self._contested.keys().isdisjoint(keys)

    def move(self, origin: str, before: Collection[K], after: Collection[K]) -> None:
        """Replace the keys of ``origin``: from those in ``before`` to those in ``after``."""
        gone = [key for key in before if key not in after]
        new = [key for key in after if key not in before]
        if not gone and not new:
            return
        if self._shared:
            self._origins, self._contested = dict(self._origins), dict(self._contested)
            self._shared = False
        for key in gone:
            self._set(key, tuple(other for other in self.of(key) if other != origin))
        alone = (origin,)  # one object for nearly all keys
        for key in new:
            others = self.of(key)
            self._set(key, (*others, origin) if others else alone)

    def view(self) -> tuple[Mapping[K, tuple[str, ...]], Mapping[K, tuple[str, ...]]]:
        """Return the whole index, and its part with several origins per key; both are immutable."""
        self._shared = True
        return self._origins, self._contested

    def _set(self, key: K, origins: tuple[str, ...]) -> None:
        if origins:
            self._origins[key] = origins
        else:
            self._origins.pop(key, None)
        if len(origins) > 1:
            self._contested[key] = origins
        else:
            self._contested.pop(key, None)
