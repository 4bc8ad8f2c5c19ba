"""A fair order for a bounded number of places: one item of each owner in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def in_turn(items: Iterable[T], owner: Callable[[T], Hashable]) -> list[T]:
    """Return items so that the first of each owner come before the second of any.

    So the first items, however many are taken, have an equal number of each owner, or all that it
    has. Items of one owner, and the owners of one round, keep their order.

    Args:
        items: those that an owner wants most come first among its own.
        owner: returns whose an item is: a namespace, for example.
    """
    places: Counter[Hashable] = Counter()
    rounds: list[list[T]] = []
    for item in items:
        place = places[whose := owner(item)]
        places[whose] += 1
        if place == len(rounds):
            rounds.append([])
        rounds[place].append(item)
    return [item for one_round in rounds for item in one_round]
