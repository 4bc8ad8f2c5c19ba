"""A small collection of objects by key, kept in step by a reflector or a file."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from adapter.cluster.feed import Feed
from apiservice.kube.reflector import EventType

K_co = TypeVar("K_co", bound=Hashable, covariant=True)
K = TypeVar("K", bound=Hashable)


class Keyed(Protocol[K_co]):
    """An object with an identity of its own."""

    @property
    def key(self) -> K_co:
        """What it is found by."""


V = TypeVar("V", bound=Keyed[Hashable])


class Table(Generic[K, V]):
    """Objects by their key; answers only what has been read (see ``synced``)."""

    def __init__(self) -> None:
        self._items: dict[Hashable, V] = {}
        self._feed: Feed | None = None
        self.version = 0
        """Grows with every change."""
        self.synced = False
        """All objects have been read at least once."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[V]:
        return iter(self._items.values())

    def fed_by(self, feed: Feed) -> None:
        """Name the feed whose age and errors are this table's."""
        self._feed = feed

    def age(self, now: float) -> float:
        """Seconds since the origin was last heard from; ``inf`` when never."""
        return self._feed.age(now) if self._feed else float("inf")

    @property
    def problem(self) -> str:
        """Why questions cannot be answered; empty when they can.

        A table that was read once keeps answering while its origin is away.
        """
        if self.synced:
            return ""
        return (self._feed.last_error if self._feed else "not watched") or "not read yet"

    def find(self, key: K) -> V | None:
        """The object of that key."""
        return self._items.get(key)

    def replace(self, items: Sequence[V]) -> None:
        """These are all objects that exist."""
        found: dict[Hashable, V] = {item.key: item for item in items}
        if found != self._items:
            self._items = found
            self.version += 1
        self.synced = True

    def apply(self, event: EventType, item: V) -> None:
        """One object was added, modified or deleted."""
        if event is EventType.DELETED:
            changed = self._items.pop(item.key, None) is not None
        else:
            changed = self._items.get(item.key) != item
            self._items[item.key] = item
        self.version += changed
