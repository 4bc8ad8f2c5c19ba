"""One item of each owner in turn: an owner of many takes no places of others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from apiservice.runtime.inturn import in_turn


def test_the_first_of_each_owner_comes_before_the_second_of_any() -> None:
    assert in_turn(["a1", "a2", "a3", "b1", "b2", "c1"], lambda item: item[0]) == [
        *("a1", "b1", "c1"),
        *("a2", "b2"),
        "a3",
    ]


def test_owners_of_a_round_keep_their_order() -> None:
    assert in_turn(["b1", "a1", "a2", "b2"], lambda item: item[0]) == ["b1", "a1", "a2", "b2"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers())), st.integers(0, 30))
def test_every_beginning_has_an_equal_share_of_each_owner(
    items: list[tuple[str, int]], places: int
) -> None:
    turns = in_turn(items, lambda item: item[0])
    for name in "abcd":
        own = [item for item in items if item[0] == name]
        assert [item for item in turns if item[0] == name] == own
    taken, all_of = Counter(name for name, _ in turns[:places]), Counter(name for name, _ in items)
    most = max(taken.values(), default=0)
    assert all(taken[name] >= min(all_of[name], most - 1) for name in all_of)
