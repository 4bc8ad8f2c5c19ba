"""The state of the picture, and what each key changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from adapter.tools.top.order import Sort
from adapter.tools.top.rows import RowKey
from adapter.tools.top.tables import ViewName

VIEWS: Final[Mapping[str, ViewName]] = {
    "0": "overview",
    "o": "overview",
    "1": "gpus",
    "g": "gpus",
    "2": "pods",
    "p": "pods",
    "3": "workloads",
    "w": "workloads",
    "4": "hpas",
    "h": "hpas",
    "5": "nodes",
    "n": "nodes",
    "6": "pools",
    "c": "pools",
}
"""Key -> view."""
_LONGEST: Final = 100
"""Characters of a filter."""


class Mode(StrEnum):
    """What is in front."""

    TABLE = "table"
    FILTER = "filter"
    """The table, and keys go to the filter."""
    TEXT = "text"
    """An explanation, the help, or the messages of failures."""


class Effect(StrEnum):
    """What the terminal has to do after a key."""

    QUIT = "quit"
    EXPLAIN = "explain"
    HELP = "help"
    PROBLEMS = "problems"
    READ = "read"
    """Read the cluster now."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the last picture showed; keys refer to it."""

    rows: Sequence[RowKey] = ()
    """Every row of the view, in order."""
    height: int = 1
    """Rows, or lines of a text, that fit."""
    sortable: Sequence[str] = ()
    """Columns that are visible; empty if the view is not sorted."""
    sort: Sort = field(default_factory=lambda: Sort(""))
    lines: int = 0
    """Lines of the text in front."""


@dataclass(frozen=True, slots=True)
class TopState:
    """What the keys have chosen."""

    view: ViewName = "overview"
    sorts: Mapping[ViewName, Sort] = field(default_factory=dict)
    """By view; the others have the sort of their table."""
    filter: str = ""
    mode: Mode = Mode.TABLE
    cursor: int = 0
    anchor: RowKey | None = None
    """The row that was chosen. None until a key moves: then the cursor stays at the top."""
    paused: bool = False
    everywhere: bool = True
    """All namespaces."""
    scroll: int = 0
    """First line of the text in front."""

    def at(self, rows: Sequence[RowKey]) -> int:
        """Return the place of the cursor among rows: it follows the chosen row."""
        if self.anchor is not None and not (
            self.cursor < len(rows) and rows[self.cursor] == self.anchor
        ):
            try:
                return rows.index(self.anchor)
            except ValueError:  # the row is gone: the cursor keeps its place
                pass
        return min(self.cursor, max(0, len(rows) - 1))


Change = tuple[TopState, Effect | None]


def press(state: TopState, key: str, shown: Shown) -> Change:
    """Return the state after a key, and what is to be done."""
    if state.mode is Mode.FILTER:
        return _press_in_filter(state, key), None
    if state.mode is Mode.TEXT:
        return _press_in_text(state, key, shown)
    if key in VIEWS:
        return replace(state, view=VIEWS[key], cursor=0, anchor=None), None
    if key in _MOVES:
        return _move_cursor(state, _MOVES[key](state.at(shown.rows), shown), shown), None
    change = _KEYS.get(key)
    return (state, None) if change is None else change(state, shown)


def _press_in_filter(state: TopState, key: str) -> TopState:
    """Keys while the filter is typed: the rows follow at once."""
    if key in ("enter", "down"):
        return replace(state, mode=Mode.TABLE)
    if key in ("esc", "quit"):
        return replace(state, mode=Mode.TABLE, filter="", cursor=0, anchor=None)
    text = state.filter
    if key == "backspace":
        text = text[:-1]
    elif key == "clear":
        text = ""
    elif len(key) == 1:
        text = (text + key)[:_LONGEST]
    return replace(state, filter=text, cursor=0, anchor=None)


def _press_in_text(state: TopState, key: str, shown: Shown) -> Change:
    if key in ("esc", "q", "enter", "left", "?", "quit"):
        return replace(state, mode=Mode.TABLE, scroll=0), None
    if key not in _MOVES:
        return state, None
    last = max(0, shown.lines - shown.height)
    scroll = {"down": 1, "j": 1, "up": -1, "k": -1}.get(key)
    if scroll is None:
        steps = {"pagedown": shown.height, "pageup": -shown.height, "home": -last}
        scroll = steps.get(key, last)
    return replace(state, scroll=min(max(0, state.scroll + scroll), last)), None


def _move_cursor(state: TopState, to: int, shown: Shown) -> TopState:
    if not shown.rows:
        return state
    cursor = min(max(0, to), len(shown.rows) - 1)
    # At the top, the cursor stays there when other rows become the first ones.
    anchor = shown.rows[cursor] if cursor else None
    return replace(state, cursor=cursor, anchor=anchor)


_MOVES: Final[Mapping[str, Callable[[int, Shown], int]]] = {
    "up": lambda at, _: at - 1,
    "k": lambda at, _: at - 1,
    "down": lambda at, _: at + 1,
    "j": lambda at, _: at + 1,
    "pageup": lambda at, shown: at - max(1, shown.height),
    "pagedown": lambda at, shown: at + max(1, shown.height),
    "home": lambda at, _: 0,
    "end": lambda at, shown: len(shown.rows) - 1,
    "G": lambda at, shown: len(shown.rows) - 1,
}


def _next_sort(state: TopState, shown: Shown) -> Change:
    if not shown.sortable:
        return state, None
    names = list(shown.sortable)
    index = names.index(shown.sort.column) if shown.sort.column in names else -1
    return _set_sort(state, Sort(names[(index + 1) % len(names)])), None


def _turn_sort(state: TopState, shown: Shown) -> Change:
    if not shown.sortable:
        return state, None
    return _set_sort(state, Sort(shown.sort.column, not shown.sort.reverse)), None


def _set_sort(state: TopState, sort: Sort) -> TopState:
    return replace(state, sorts={**state.sorts, state.view: sort}, cursor=0, anchor=None)


def _go_back(state: TopState, _: Shown) -> Change:
    """Esc and q take the filter away, and without a filter they end the program."""
    if state.filter:
        return replace(state, filter="", cursor=0, anchor=None), None
    return state, Effect.QUIT


def _explain(state: TopState, shown: Shown) -> Change:
    if not shown.rows:
        return state, None
    return replace(state, mode=Mode.TEXT, scroll=0), Effect.EXPLAIN


def _text(effect: Effect) -> Callable[[TopState, Shown], Change]:
    return lambda state, _: (replace(state, mode=Mode.TEXT, scroll=0), effect)


_KEYS: Final[Mapping[str, Callable[[TopState, Shown], Change]]] = {
    "s": _next_sort,
    "r": _turn_sort,
    "/": lambda state, _: (replace(state, mode=Mode.FILTER), None),
    " ": lambda state, _: (
        replace(state, paused=not state.paused),
        Effect.READ if state.paused else None,
    ),
    "a": lambda state, _: (
        replace(state, everywhere=not state.everywhere, cursor=0, anchor=None),
        Effect.READ,
    ),
    "redraw": lambda state, _: (state, Effect.READ),
    "enter": _explain,
    "right": _explain,
    "?": _text(Effect.HELP),
    "e": _text(Effect.PROBLEMS),
    "esc": _go_back,
    "q": _go_back,
    "quit": lambda state, _: (state, Effect.QUIT),
}
