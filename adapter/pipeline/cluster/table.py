"""A collection of objects by key that a reflector or a file keeps up to date."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from adapter.pipeline.cluster.feed import Fed
from apiservice.kube.reflector import EventType
from apiservice.runtime.steps import Steps, at_once, parts

K_co = TypeVar("K_co", bound=Hashable, covariant=True)
K = TypeVar("K", bound=Hashable)


class Keyed(Protocol[K_co]):
    """An object with a key."""

    @property
    def key(self) -> K_co:
        """The key under which it is found."""


V = TypeVar("V", bound=Keyed[Hashable])

_STEP: Final = 64
"""Objects that are taken in one step."""


class Table(Fed, Generic[K, V]):
    """Objects by their key. Contains only what has been read (see ``synced``)."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[Hashable, V] = {}
        self._listeners: list[Callable[[V | None, V | None], None]] = []

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
        at_once(self.replace_in_steps(items))

    def replace_in_steps(self, items: Sequence[V]) -> Steps[None]:
        """The same in steps. Each step leaves the table as single events would."""
        listed: set[Hashable] = set()
        for some in parts(items, _STEP):
            listed.update(item.key for item in some)
            yield
        for some in parts(tuple(self), _STEP):
            for item in some:
                if item.key not in listed:
                    self.apply(EventType.DELETED, item)
            yield
        for some in parts(items, _STEP):
            for item in some:
                if self._items.get(item.key) != item:
                    self.apply(EventType.MODIFIED, item)
            yield
        self.synced = True

    def intern(self, item: V) -> V:
        """Return the table's own object if it equals ``item``, else ``item``."""
        stored = self._items.get(item.key)
        return stored if stored is not None and stored == item else item

    def apply(self, event: EventType, item: V) -> None:
        """Take one added, modified or deleted object."""
        before = self._items.get(item.key)
        if event is EventType.DELETED:
            after = None
            self._items.pop(item.key, None)
        else:
            after = self._items[item.key] = item
        self.version += before != after
        self._notify(before, after)

    def lose(self, namespace: str, name: str) -> None:
        """Remove the object of that name, which can no longer be read, if it is known."""
        item = self._items.get((namespace, name) if namespace else name)
        if item is not None:
            self.apply(EventType.DELETED, item)

    def listen(self, listener: Callable[[V | None, V | None], None]) -> None:
        """Call ``listener`` with (before, after) at every change from now on.

        Before or after is None for an object that does not exist.
        """
        self._listeners.append(listener)

    def _notify(self, before: V | None, after: V | None) -> None:
        if before != after:
            for listener in self._listeners:
                listener(before, after)
