"""What ScaledObjects ask, each compiled once and remembered with its last answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.cluster.pod import Pod
from adapter.keda.number import Number
from adapter.keda.podvalues import PodRow
from adapter.keda.trigger import Trigger, compile_trigger

_LIMIT: Final = 32 * 1024 * 1024
_OVERHEAD: Final = 2048
"""Bytes that a question takes beside its texts, about."""


class Ref(NamedTuple):
    """A trigger of a ScaledObject, as KEDA names it."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


@dataclass(slots=True)
class Told:
    """What a trigger is told."""

    metric: str
    """In lower case: the HPA asks for external metrics so, whatever the name."""
    number: Number
    """What the HPA is to divide by the target."""
    active: bool
    until: float
    """Epoch seconds at which it ends, unless something changes before."""
    message: bytes = b""
    """As whoever sends it has encoded it, so that it is encoded once."""


class State(NamedTuple):
    """What an answer was made from. Either part grows with every change."""

    values: int
    pods: int


class Question:
    """A trigger of one ScaledObject, and what it was told last."""

    __slots__ = ("_known", "_since", "_state", "_told", "pods", "row", "trigger")

    def __init__(self, trigger: Trigger, known: object) -> None:
        self.trigger = trigger
        self.pods: Sequence[Pod] | None = None
        """As of the last answer."""
        self.row: PodRow | None = None
        """The same; other questions may share it."""
        self._known = known
        self._told: Told | None = None
        self._state = State(-1, -1)
        self._since = 0.0

    def compiled_for(self, known: object) -> bool:
        """Whether the metrics that there were are these."""
        return self._known is known

    def remember(self, told: Told, state: State, now: float) -> None:
        """It is told this."""
        self._told, self._state, self._since = told, state, now

    def recall(self, state: State, now: float, hold: float) -> Told | None:
        """What it was told, while that stands.

        Args:
            state: as of now. A change of pods ends an answer at once.
            now: epoch seconds.
            hold: seconds that an answer stands although values changed.
        """
        told = self._told
        if told is None or not self._since <= now < told.until or self._state.pods != state.pods:
            return None
        if self._state.values != state.values and now - self._since >= hold:
            return None
        return told


class Questions:
    """KEDA asks the same few again and again; others may ask anything.

    Args:
        limit: bytes that are remembered, about. Beyond them everything is forgotten.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._asked: dict[tuple[str, str, frozenset[tuple[str, str]]], Question] = {}

    def get(self, ref: Ref, known: Collection[str]) -> Question:
        """The question of this trigger; the same object while ``known`` is the same.

        Raises:
            TriggerError: its metadata is wrong. Failures are not remembered.
        """
        key = (ref.namespace, ref.name, frozenset(ref.metadata.items()))
        found = self._asked.get(key)
        if found is not None and found.compiled_for(known):
            return found
        question = Question(compile_trigger(ref.metadata, known), known)
        if found is None:
            self._size += _size(ref)
        if self._size > self._limit:
            self._asked.clear()
            self._size = _size(ref)
        self._asked[key] = question
        return question


def _size(ref: Ref) -> int:
    texts = sum(len(key) + len(value) for key, value in ref.metadata.items())
    return _OVERHEAD + len(ref.namespace) + len(ref.name) + texts
