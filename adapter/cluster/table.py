"""A collection of objects by key that a reflector or a file keeps up to date."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from adapter.cluster.feed import Fed
from apiservice.kube.reflector import EventType

K_co = TypeVar("K_co", bound=Hashable, covariant=True)
K = TypeVar("K", bound=Hashable)


class Keyed(Protocol[K_co]):
    """An object with a key."""

    @property
    def key(self) -> K_co:
        """The key under which it is found."""


V = TypeVar("V", bound=Keyed[Hashable])


class Table(Fed, Generic[K, V]):
    """Objects by their key. Contains only what has been read (see ``synced``)."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[Hashable, V] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[V]:
        return iter(self._items.values())

    @property
    def problem(self) -> str:
        """Why lookups cannot be answered; empty if they can.

        A table that was read once answers even while its origin is unavailable.
        """
        if self.synced:
            return ""
        return (self._feed.last_error if self._feed else "not watched") or "not read yet"

    def find(self, key: K) -> V | None:
        """Return the object of that key."""
        return self._items.get(key)

    def replace(self, items: Sequence[V]) -> None:
        """Take a complete list of objects."""
        found: dict[Hashable, V] = {item.key: item for item in items}
        if found != self._items:
            self._items = found
            self.version += 1
        self.synced = True

    def apply(self, event: EventType, item: V) -> None:
        """Take one added, modified or deleted object."""
        if event is EventType.DELETED:
            changed = self._items.pop(item.key, None) is not None
        else:
            changed = self._items.get(item.key) != item
            self._items[item.key] = item
        self.version += changed
