"""Compiled triggers with their last answers, within a bound in bytes.

KEDA asks the same few again and again: GetMetrics, and IsActive at once after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from cachetools import LRUCache

from adapter.keda.demand import Number
from adapter.keda.trigger import Ref, Trigger, compile_trigger

LIMIT: Final = 16 * 1024 * 1024
_TRIGGER: Final = 2048
"""Bytes that a trigger takes beside its texts and selectors, about."""
_TEXT: Final = 64
"""Bytes of a text beside its characters, which take up to four bytes each."""


class Told(NamedTuple):
    """What a trigger is told."""

    metric: str
    """In lower case: the HPA asks for external metrics so, whatever the name."""
    number: Number
    """What the HPA is to divide by the target."""
    active: bool
    until: float
    """Epoch seconds at which it ends, unless something changes before."""


class State(NamedTuple):
    """What an answer was made from. Either part grows with every change."""

    values: int
    pods: int


_NEVER: Final = State(-1, -1)


@dataclass(slots=True)
class Entry:
    """A trigger of one ScaledObject, and what it was told last."""

    trigger: Trigger
    known: object
    """The metrics that it was compiled for."""
    size: int
    """Bytes, about."""
    told: Told | None = None
    state: State = _NEVER
    since: float = 0.0

    def recall(self, state: State, now: float, hold: float) -> Told | None:
        """What it was told, while that stands.

        Args:
            state: as of now. A change of pods ends an answer at once.
            now: epoch seconds.
            hold: seconds that an answer stands although values changed.
        """
        told = self.told
        if told is None or not self.since <= now < told.until or self.state.pods != state.pods:
            return None
        return told if self.state == state or now - self.since < hold else None

    def remember(self, told: Told, state: State, now: float) -> None:
        """It is told this."""
        self.told, self.state, self.since = told, state, now


class Triggers:
    """Compiles metadata.

    Args:
        limit: bytes that are remembered, about; the triggers not asked for longest go first.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._entries: LRUCache[tuple[str, str, frozenset[tuple[str, str]]], Entry] = LRUCache(
            limit, getsizeof=lambda entry: entry.size
        )

    def get(self, ref: Ref, known: Collection[str]) -> Entry:
        """The entry of this trigger; the same object while ``known`` is the same.

        Raises:
            TriggerError: the metadata is wrong. Failures are not remembered.
        """
        key = (ref.namespace, ref.name, frozenset(ref.metadata.items()))
        found = self._entries.get(key)
        if found is not None and found.known is known:
            return found
        trigger = compile_trigger(ref.metadata, known)
        entry = Entry(trigger, known, _size(ref, trigger))
        if entry.size <= self._entries.maxsize:
            self._entries[key] = entry
        return entry

    @property
    def size(self) -> int:
        """Bytes remembered now, about."""
        return int(self._entries.currsize)


def _size(ref: Ref, trigger: Trigger) -> int:
    pairs = [(ref.namespace, ref.name), *ref.metadata.items()]
    texts = sum(2 * _TEXT + 4 * (len(one) + len(other)) for one, other in pairs)
    selectors = [trigger.devices] if trigger.pods is None else [trigger.devices, trigger.pods]
    return _TRIGGER + texts + sum(selector.bytes for selector in selectors)
