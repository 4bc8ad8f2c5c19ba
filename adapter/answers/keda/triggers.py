"""A cache of compiled triggers with their last answers, bounded in bytes.

KEDA repeats the same few: GetMetrics, and IsActive right after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from cachetools import LRUCache

from adapter.answers.keda.demand import Number
from adapter.answers.keda.trigger import Ref, Trigger, compile_trigger

LIMIT: Final = 16 * 1024 * 1024
_TRIGGER: Final = 2048
"""Bytes of a trigger beside its texts and selectors, about."""
_TEXT: Final = 64
"""Bytes of a text beside its characters, which take up to four bytes each."""


class TriggerAnswer(NamedTuple):
    """The answer to a trigger."""

    metric: str
    """In lower case, because the HPA requests external metrics so."""
    number: Number
    """The value that the HPA divides by the target."""
    active: bool
    until: float
    """Epoch seconds at which it expires, unless something changes before."""


class AnswerVersion(NamedTuple):
    """The versions that an answer was made from. Each grows with every change."""

    values: int
    pods: int


_NEVER: Final = AnswerVersion(-1, -1)


@dataclass(slots=True)
class Entry:
    """A trigger of one ScaledObject, and its last answer."""

    trigger: Trigger
    metrics: object
    """The metrics that it was compiled for."""
    size: int
    """Bytes, about."""
    answer: TriggerAnswer | None = None
    state: AnswerVersion = _NEVER
    since: float = 0.0

    def recall(self, state: AnswerVersion, now: float, hold: float) -> TriggerAnswer | None:
        """Return the last answer while it is valid.

        Args:
            state: the current versions. A change of pods invalidates an answer at once.
            now: epoch seconds.
            hold: seconds that an answer is reused although values changed.
        """
        answer = self.answer
        if answer is None or not self.since <= now < answer.until or self.state.pods != state.pods:
            return None
        return answer if self.state == state or now - self.since < hold else None

    def remember(self, answer: TriggerAnswer, state: AnswerVersion, now: float) -> None:
        """Keep the answer."""
        self.answer, self.state, self.since = answer, state, now


class Triggers:
    """Compiles metadata.

    Args:
        limit: bytes of the entries, about; the least recently used triggers are evicted.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._entries: LRUCache[tuple[str, str, frozenset[tuple[str, str]]], Entry] = LRUCache(
            limit, getsizeof=lambda entry: entry.size
        )

    def get(self, ref: Ref, metrics: Collection[str]) -> Entry:
        """Return the entry of this trigger; the same object while ``metrics`` is the same.

        Raises:
            BadTrigger: the metadata is wrong. Failures are not cached.
        """
        key = (ref.namespace, ref.name, frozenset(ref.metadata.items()))
        cached = self._entries.get(key)
        if cached is not None and cached.metrics is metrics:
            return cached
        trigger = compile_trigger(ref.metadata, metrics)
        entry = Entry(trigger, metrics, _size(ref, trigger))
        if entry.size <= self._entries.maxsize:
            self._entries[key] = entry
        return entry

    @property
    def size(self) -> int:
        """Bytes of the entries, about."""
        return int(self._entries.currsize)


def _size(ref: Ref, trigger: Trigger) -> int:
    pairs = [(ref.namespace, ref.name), *ref.metadata.items()]
    texts = sum(2 * _TEXT + 4 * (len(one) + len(other)) for one, other in pairs)
    selectors = [trigger.devices] if trigger.pods is None else [trigger.devices, trigger.pods]
    return _TRIGGER + texts + sum(selector.bytes for selector in selectors)
