"""Rows of a large list are made when they are shown, and are the same as if made at once."""

from __future__ import annotations

import random

import pytest

from adapter.config.process.output import Screen
from adapter.tools.client.tables import Cell, ObjectTable, TableRow
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.frame import Painter, Scene
from adapter.tools.top.order import Sort, first_rows, order_rows
from adapter.tools.top.rows import PickedRows, RowKey, RowKeys
from adapter.tools.top.state import TopState, press
from adapter.tools.top.tables import gpus

NUMBERS = ("Util-Percent", "Temp-Celsius", "Idle-Seconds")
COLUMNS = ("Name", "Node", "Model", "Util", "Pods", "Idle-Since", "Temp", *NUMBERS)

TEMPS: list[tuple[Cell, Cell]] = [(None, None), (31, 31), ("40C", 40)]


def fleet(count: int, seed: int = 3) -> ClusterLists:
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        name, node = f"n{number // 8}.gpu{number % 8}", f"n{number // 8}"
        util, (temp, degrees) = chance.choice([None, chance.randrange(101)]), chance.choice(TEMPS)
        text = None if util is None else f"{util}%"
        cells = (name, node, "H100", text, "chat/llm", None, temp, util, degrees, None)
        rows.append(TableRow(name, "", {}, cells))
    return ClusterLists({"gpus": ObjectTable(COLUMNS, rows)}, [], at=1_767_603_540.0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the rows that are made."""
    names: list[str] = []
    make = PickedRows._row

    def noted(rows: PickedRows, row: TableRow) -> object:
        names.append(row.name)
        return make(rows, row)

    monkeypatch.setattr(PickedRows, "_row", noted)
    return names


def test_a_picture_makes_the_rows_that_it_shows_however_many_there_are(made: list[str]) -> None:
    painter, state = Painter(Screen(width=120, unicode=True)), TopState(view="gpus")
    picture = painter.paint(state, Scene(fleet(4000)), 120, 30)
    state, _ = press(state, "end", picture.shown)
    painter.paint(state, Scene(fleet(4000, seed=4)), 120, 30)
    assert 0 < len(made) < 100


def test_the_cursor_follows_its_row_to_another_place() -> None:
    painter, state = Painter(Screen(width=120, unicode=True)), TopState(view="gpus")
    picture = painter.paint(state, Scene(fleet(400)), 120, 30)
    for _ in range(5):
        state, _ = press(state, "down", picture.shown)
    chosen = picture.shown.rows[5]
    again = painter.paint(state, Scene(fleet(400, seed=4)), 120, 30)
    assert again.shown.rows[state.at(again.shown.rows)] == chosen
    assert painter.about(state.at(again.shown.rows)) == chosen


@pytest.mark.parametrize("column", ["UTIL", "NAME", "TEMP"])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_rows_are_those_of_the_whole_order(column: str, reverse: bool) -> None:
    table, sort = gpus(fleet(300)), Sort(column, reverse)
    place = table.index(column)
    whole = [row for row in order_rows(table, sort) if row.cells[place] is not None]
    assert list(first_rows(table, sort, 10)) == whole[:10]
    assert len(order_rows(table, sort)) == 300


def test_a_cell_that_is_a_number_is_shown_as_a_text() -> None:
    table = gpus(fleet(300))
    cells = {row.cells[table.index("TEMP")] for row in table.rows}
    assert cells == {None, "31", "40C"}
    assert isinstance(table.rows, PickedRows)
    assert set(table.rows.column(table.index("TEMP"))) == cells
    assert set(table.rows.column(table.index("XID"))) == {None}, "the server lacks it"


def test_keys_of_several_tables_are_one_sequence() -> None:
    one, two = gpus(fleet(8)).rows, gpus(fleet(16)).rows[8:]
    keys = RowKeys([one, two])
    assert len(keys) == 16
    assert [key.name for key in keys] == [row.key.name for row in (*one, *two)]
    assert keys.index(keys[10]) == 10
    assert keys[-1] == keys[15]
    assert list(keys[7:9]) == [keys[7], keys[8]]
    with pytest.raises(ValueError, match="n9"):
        keys.index(RowKey("gpu", "", "n9.gpu9"))
    with pytest.raises(IndexError):
        keys.row(16)
