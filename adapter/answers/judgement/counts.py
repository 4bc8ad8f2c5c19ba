"""How many HPAs are in each state. Each is counted once, so the counts add up to the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from adapter.answers.judgement.states import LEVELS, Level, ScalingState


class HpaClass(NamedTuple):
    """States that a sentence counts together."""

    key: str
    """As the page names it: ``atZero``."""
    states: tuple[ScalingState, ...]
    one: str
    """After ``1 HPA``: ``is stuck``."""
    more: str

    @property
    def level(self) -> Level:
        """How bad the states are."""
        return LEVELS[self.states[0]]


_CLASSES: Final = {
    ScalingState.STUCK: ("stuck", "is stuck", "are stuck"),
    ScalingState.STALE: ("stale", "is stale", "are stale"),
    ScalingState.BEHIND: ("behind", "is behind", "are behind"),
    ScalingState.OVERLOADED: ("overloaded", "is overloaded", "are overloaded"),
    ScalingState.IMPAIRED: ("impaired", "is impaired", "are impaired"),
    ScalingState.INCOMPLETE: ("incomplete", "lacks a value", "lack a value"),
    ScalingState.WAITING: ("waiting", "waits", "wait"),
    ScalingState.SCALING_OUT: ("scaling", "scales", "scale"),
    ScalingState.HELD: ("held", "is held", "are held"),
    ScalingState.HEALTHY: ("healthy", "is healthy", "are healthy"),
    ScalingState.AT_ZERO: ("atZero", "is at zero", "are at zero"),
    ScalingState.PAUSED: ("paused", "is paused", "are paused"),
}
_SCALING: Final = (ScalingState.SCALING_OUT, ScalingState.SCALING_IN)
CLASSES: Final = tuple(
    HpaClass(key, _SCALING if state in _SCALING else (state,), one, more)
    for state, (key, one, more) in _CLASSES.items()
)
"""The worst first. Both directions of scaling are one class."""


def class_of(state: ScalingState) -> HpaClass:
    """Return the class in which an HPA of a state is counted."""
    return next(row for row in CLASSES if state in row.states)


class HpaCounts:
    """HPAs by class.

    Args:
        states: one of each HPA.
        noun: what is counted.
    """

    def __init__(self, states: Iterable[ScalingState], noun: str = "HPA") -> None:
        self.noun = noun
        by_state = Counter(states)
        self.total = by_state.total()
        self._counts = {row: sum(by_state[state] for state in row.states) for row in CLASSES}

    def rows(self) -> list[tuple[HpaClass, int]]:
        """Return the classes that have an HPA, the worst first."""
        return [(row, amount) for row, amount in self._counts.items() if amount]

    def json(self) -> dict[str, Any]:
        """The part of the page: the total, and each class by its key. The classes add up."""
        counts = {row.key: amount for row, amount in self._counts.items()}
        return {"noun": self.noun, "total": self.total, **counts}
