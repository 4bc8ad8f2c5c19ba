"""What each key changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.top.order import Sort
from adapter.tools.top.rows import RowKey
from adapter.tools.top.state import VIEWS, Effect, Mode, Shown, TopState, press

ROWS = [RowKey("pod", "chat", f"p{at}") for at in range(20)]
SHOWN = Shown(ROWS, 8, ("NAME", "UTIL", "MEM"), Sort("UTIL"))
TABLE = TopState(view="pods")


def after(keys: Sequence[str], state: TopState = TABLE, shown: Shown = SHOWN) -> TopState:
    for key in keys:
        state, _ = press(state, key, shown)
    return state


@pytest.mark.parametrize("key", VIEWS)
def test_a_key_leads_to_each_view_and_to_its_first_row(key: str) -> None:
    state = after([key], after(["end"]))
    assert (state.view, state.cursor, state.anchor) == (VIEWS[key], 0, None)


@pytest.mark.parametrize(
    ("keys", "cursor"),
    [
        (["down"], 1),
        (["j", "j", "k"], 1),
        (["up"], 0),
        (["pagedown"], 8),
        (["pagedown", "pagedown", "pagedown"], 19),
        (["end"], 19),
        (["G", "pageup"], 11),
        (["G", "home"], 0),
        (["G", "down"], 19),
    ],
)
def test_the_cursor_moves_and_stays_among_the_rows(keys: list[str], cursor: int) -> None:
    assert after(keys).at(ROWS) == cursor


def test_the_cursor_follows_its_row_when_others_overtake_it() -> None:
    state = after(["down", "down"])
    assert state.at([ROWS[9], ROWS[8], ROWS[0], ROWS[1], ROWS[2]]) == 4
    assert after(["up"], state, replace(SHOWN, rows=[ROWS[9], ROWS[2]])).anchor is None


def test_the_cursor_keeps_its_place_when_its_row_is_gone() -> None:
    state = after(["down", "down"])
    assert state.at([ROWS[0], ROWS[1], ROWS[3], ROWS[4]]) == 2
    assert state.at([ROWS[0]]) == 0
    assert state.at([]) == 0


def test_at_the_top_the_cursor_stays_at_the_top() -> None:
    assert after(["down", "up"]).at(list(reversed(ROWS))) == 0


def test_s_goes_through_the_columns_that_are_shown() -> None:
    state = after(["s"])
    assert state.sorts == {"pods": Sort("MEM")}
    state = after(["s"], state, replace(SHOWN, sort=Sort("MEM")))
    assert state.sorts == {"pods": Sort("NAME")}
    gone = replace(SHOWN, sort=Sort("XID"))
    assert after(["s"], TABLE, gone).sorts == {"pods": Sort("NAME")}


def test_r_reverses_and_each_view_keeps_its_own_sort() -> None:
    state = after(["r"])
    assert state.sorts == {"pods": Sort("UTIL", reverse=True)}
    again = after(["r"], state, replace(SHOWN, sort=Sort("UTIL", reverse=True)))
    assert again.sorts == {"pods": Sort("UTIL")}
    assert after(["1", "r"], state).sorts.keys() == {"pods", "gpus"}


def test_the_overview_is_not_sorted() -> None:
    assert after(["s", "r"], TopState(), Shown(ROWS, 8)).sorts == {}


def test_a_filter_is_typed_kept_and_removed() -> None:
    state = after(["down", "/", "l", "q", "m", "backspace", "backspace", "1", " ", "ü"])
    assert (state.mode, state.filter, state.cursor, state.view) == (Mode.FILTER, "l1 ü", 0, "pods")
    kept = after(["enter"], state)
    assert (kept.mode, kept.filter) == (Mode.TABLE, "l1 ü")
    assert after(["clear"], state).filter == ""
    assert after(["esc"], state).filter == ""
    assert press(kept, "q", SHOWN) == (replace(kept, filter=""), None)
    assert press(replace(kept, filter=""), "q", SHOWN)[1] is Effect.QUIT
    assert press(replace(kept, filter=""), "esc", SHOWN)[1] is Effect.QUIT


def test_a_filter_is_bounded() -> None:
    assert len(after(["/", *("x" * 500)]).filter) == 100


@pytest.mark.parametrize(
    ("key", "effect"), [("enter", Effect.EXPLAIN), ("?", Effect.HELP), ("e", Effect.PROBLEMS)]
)
def test_a_text_comes_to_the_front_scrolls_and_goes(key: str, effect: Effect) -> None:
    state, done = press(TABLE, key, SHOWN)
    assert (state.mode, done) == (Mode.TEXT, effect)
    text = Shown(height=10, lines=35)
    assert after(["down", "down", "up"], state, text).scroll == 1
    assert after(["pagedown"] * 9, state, text).scroll == 25
    assert after(["end", "pageup"], state, text).scroll == 15
    assert after(["G", "home", "up"], state, text).scroll == 0
    assert after(["x", "1", " "], state, text) == state
    for back in ("esc", "q", "enter"):
        assert press(after(["down"], state, text), back, text) == (TABLE, None)


def test_enter_explains_nothing_without_rows() -> None:
    assert press(TABLE, "enter", Shown()) == (TABLE, None)


def test_space_pauses_and_reads_at_once_afterwards() -> None:
    paused, effect = press(TABLE, " ", SHOWN)
    assert (paused.paused, effect) == (True, None)
    assert press(paused, " ", SHOWN) == (TABLE, Effect.READ)


def test_a_switches_the_namespaces_and_reads() -> None:
    state, effect = press(TABLE, "a", SHOWN)
    assert (state.everywhere, effect) == (False, Effect.READ)


KEYS = [*VIEWS, *"jkGsr/ ae?qx", "up", "down", "pageup", "pagedown", "home", "end", "enter", "esc"]


@given(st.lists(st.sampled_from(KEYS), max_size=30), st.integers(0, 20), st.integers(1, 30))
def test_no_keys_lead_out_of_the_rows(keys: list[str], rows: int, height: int) -> None:
    shown = Shown(ROWS[:rows], height, ("NAME",), Sort("NAME"), 5)
    state = after(keys, TABLE, shown)
    assert 0 <= state.at(shown.rows) < max(1, rows)
    assert state.scroll >= 0
