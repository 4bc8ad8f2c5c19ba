"""The picture: lines of styled text for a state, what was read, and the size of the terminal.

Pure. Only the rows that fit are formatted, so the cost does not grow with the cluster; the order
of the rows is kept until the facts, the sort or the filter change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from adapter.config.process.output import Screen
from adapter.tools.top.facts import ClusterLists
from adapter.tools.top.layout import natural_widths, place
from adapter.tools.top.lines import Line, LineFormat, Span, Style, fold_line, wrap_sentence
from adapter.tools.top.order import NameOrder, Sort, filter_rows, order_rows
from adapter.tools.top.rows import RowKey, RowKeys, TopRow
from adapter.tools.top.state import Mode, Shown, TopState
from adapter.tools.top.summaries import tables_of
from adapter.tools.top.tables import TopTable, ViewName

_TABS: Final[tuple[tuple[str, ViewName], ...]] = (
    ("0", "overview"),
    ("1", "gpus"),
    ("2", "pods"),
    ("3", "workloads"),
    ("4", "hpas"),
    ("5", "nodes"),
    ("6", "pools"),
)
_HINT: Final = "0-5 views  s r sort  / filter  enter explain  ? help  q quit"
_TALL: Final = 20
"""Lines from which on a verdict may take two."""
_PROBLEMS: Final = 2
"""Lines about lists that could not be read."""
_NOTES: Final = 3
"""Lines about what has no row."""
_VERDICTS: Final[dict[str, Style]] = {"good": "good", "warning": "warning", "bad": "bad"}
HELP: Final = """\
Views      0 o overview   1 g gpus   2 p pods   3 w workloads   4 h hpas   5 n nodes
           6 c pools: what is free, and the largest pod that fits
Move       arrows, j k, PgUp PgDn, Home End, G
Enter      explains the selected row
s          sorts by the next column that is shown
r          reverses the order
/          filters: words that a row must have; !word leaves rows out
a          switches between all namespaces and one
space      pauses, and continues
e          shows in full why a list could not be read, with the command that grants the right
Ctrl-L     reads the cluster now
q Esc      goes back; without a filter it quits

A dash is a value that is missing; WHY-NOT is its reason (docs/reasons.md). It is never 0.
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything beside the keys' state that a picture shows."""

    facts: ClusterLists
    namespace: str = ""
    """The namespace that is read if not all are."""
    origin: str = ""
    """The server."""
    interval: float = 5.0
    text: Sequence[str] = ()
    """Lines of the explanation or the help in front."""


class OrderedTable(NamedTuple):
    """A table with its rows in order."""

    table: TopTable
    rows: Sequence[TopRow]
    widths: Sequence[int]
    sort: Sort


_Key = tuple[ClusterLists, ViewName, bool, Sort | None]
"""What the order of the rows depends on, without the filter."""


def _is_same(key: _Key, other: _Key) -> bool:
    # By identity: a comparison of the rows would cost more than their order.
    return key[0] is other[0] and key[1:] == other[1:]


class Picture(NamedTuple):
    """What is drawn, and what the next key refers to."""

    lines: list[Line]
    shown: Shown
    offset: int
    """First line of the body that is visible."""


class Painter:
    """Draws pictures, and keeps the order of the rows between them."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._lines = LineFormat(screen)
        self._known: tuple[_Key | None, list[OrderedTable]] = (None, [])
        self._filtered: tuple[str, list[OrderedTable]] = ("", [])
        self._names: dict[ViewName, NameOrder] = {}
        self._counted: tuple[ClusterLists | None, Span] = (None, ("", ""))
        self._offset = 0
        self._rows = RowKeys()

    def about(self, at: int) -> RowKey | None:
        """Return what explains a row of the last picture; None if there is no such row."""
        return self._rows.row(at).about if at < len(self._rows) else None

    def paint(self, state: TopState, scene: Scene, width: int, height: int) -> Picture:
        """Return a picture of exactly ``height`` lines."""
        width, height = max(1, width), max(1, height)
        sections = self._sections(state, scene)
        head = self._head(state, scene, width, height)
        foot = 1 if height >= 8 else 0
        head = head[: max(0, height - foot - 5)] if height < 12 else head
        room = height - len(head) - foot
        if state.mode is Mode.TEXT:
            body, shown = self._text(state, scene, width, room)
        else:
            body, shown = self._body(state, scene, sections, width, room)
        lines = [*head, *body, *([self._foot(state, shown, width)] if foot else [])]
        return Picture(lines[:height], shown, self._offset)

    def _sections(self, state: TopState, scene: Scene) -> list[OrderedTable]:
        key = (scene.facts, state.view, state.everywhere, state.sorts.get(state.view))
        if self._known[0] is None or not _is_same(self._known[0], key):
            tables = tables_of(state.view, scene.facts, everywhere=state.everywhere)
            sort = state.sorts.get(state.view)
            self._known = (key, [self._section(state.view, table, sort) for table in tables])
            self._filtered = ("", self._known[1])
        if self._filtered[0] != state.filter:
            some = [
                section._replace(rows=filter_rows(section.rows, state.filter))
                for section in self._known[1]
            ]
            self._filtered = (state.filter, some)
        return self._filtered[1]

    def _section(self, view: ViewName, table: TopTable, sort: Sort | None) -> OrderedTable:
        if sort is None or sort.column not in {column.name for column in table.columns}:
            sort = Sort(table.sort)
        # The parts of the overview have their order already.
        names = self._names.setdefault(view, NameOrder())
        rows = table.rows if table.title else order_rows(table, sort, names)
        return OrderedTable(table, rows, natural_widths(table, table.rows), sort)

    def _head(self, state: TopState, scene: Scene, width: int, height: int) -> list[Line]:
        facts = scene.facts
        clock = datetime.fromtimestamp(facts.at, UTC).strftime("%H:%M:%S UTC")
        place = "all namespaces" if state.everywhere else f"namespace {scene.namespace}"
        pace = f"every {max(scene.interval, 10 * facts.took):.0f} s"
        parts: Line = [("PAUSED", "reverse"), ("  ", "")] if state.paused else []
        parts += [(f"{clock}  {place}  {pace}", "")]
        parts += [(f"  filter {state.filter}", "bold")] if state.filter else []
        parts += [(f"  {scene.origin}", "dim")]
        if facts is not self._counted[0]:
            verdict = facts.verdict()
            self._counted = (facts, (verdict.text, _VERDICTS.get(verdict.level, "")))
        sentence, style = self._counted[1]
        verdict_lines = wrap_sentence(sentence, width, 2 if height >= _TALL else 1)
        lines: list[Line] = [parts, *([(line, style)] for line in verdict_lines)]
        lines.append(self._tabs(state, facts))
        texts = facts.texts
        lines += [[(f"! {text}", "warning")] for text in texts[:_PROBLEMS]]
        if len(texts) > _PROBLEMS:
            lines.append([(f"! and {len(texts) - _PROBLEMS} more: press e", "warning")])
        return [self._lines.crop_line(line, width) for line in lines]

    def _tabs(self, state: TopState, facts: ClusterLists) -> Line:
        counts = {
            "gpus": len(facts.tables["gpus"].rows) if facts.has("gpus") else None,
            "pods": len(facts.tables["gpupods"].rows) if facts.has("gpupods") else None,
            "workloads": len(facts.tables["gpuworkloads"].rows)
            if facts.has("gpuworkloads")
            else None,
            "hpas": len(facts.hpas) if facts.hpas is not None else None,
        }
        line: Line = []
        for key, view in _TABS:
            count = "" if counts.get(view) is None else f" {counts[view]}"
            line += [(f"{key} {view}{count}", "reverse" if view == state.view else ""), ("  ", "")]
        return line

    def _body(
        self, state: TopState, scene: Scene, sections: Sequence[OrderedTable], width: int, room: int
    ) -> tuple[list[Line], Shown]:
        keys = self._rows = RowKeys([section.rows for section in sections])
        cursor = state.at(keys)
        if len(sections) == 1 and not sections[0].table.title:
            return self._single(sections[0], keys, cursor, width, room)
        lines: list[Line] = []
        chosen, count = 0, 0
        for section in sections:
            placed = place(section.table, section.widths, max(1, width - 2))
            lines.append([(section.table.title, "bold")])
            if section.rows:
                lines.append(
                    [("  ", ""), *self._lines.columns(section.table, section.sort, placed)]
                )
            else:
                lines.append([(f"  {_none(section.table)}", "dim")])
            for row in section.rows:
                if count == cursor:
                    chosen = len(lines)
                lines.append(self._lines.row(section.table, row, placed, selected=count == cursor))
                count += 1
            lines.append([])
        if not sections:
            lines = [[("Not read: press e" if scene.facts.problems else "Reading ...", "warning")]]
        shown = Shown(keys, max(1, room))
        top = 0 if cursor == 0 else chosen
        self._scroll(top, chosen, len(lines), room)
        return self._lines.fill_room(lines[self._offset :], width, room), shown

    def _single(
        self, section: OrderedTable, keys: Sequence[RowKey], cursor: int, width: int, room: int
    ) -> tuple[list[Line], Shown]:
        placed = place(section.table, section.widths, max(1, width - 2))
        head = self._notes(section.table, width, room)
        if room > 1:
            head.append([("  ", ""), *self._lines.columns(section.table, section.sort, placed)])
        room_rows = max(1, room - len(head))
        self._scroll(cursor, cursor, len(keys), room_rows)
        visible = section.rows[self._offset : self._offset + room_rows]
        lines = head + [
            self._lines.row(section.table, row, placed, selected=index == cursor)
            for index, row in enumerate(visible, self._offset)
        ]
        if not section.rows:
            lines.append([(f"  {_none(section.table)}", "dim")])
        sortable = [section.table.columns[column.at].name for column in placed]
        shown = Shown(keys, room_rows, sortable, section.sort)
        return self._lines.fill_room(lines, width, room), shown

    def _notes(self, table: TopTable, width: int, room: int) -> list[Line]:
        """Return what has no row in a table, in few lines, if there is room for more than them."""
        notes = list(table.notes) if room > 2 * _NOTES else []
        if len(notes) > _NOTES:
            notes[_NOTES - 1 :] = [f"and {len(notes) - _NOTES + 1} more nodes: press 5"]
        return [self._lines.crop_line([(f"! {note}", "warning")], width) for note in notes]

    def _scroll(self, top: int, cursor: int, count: int, room: int) -> None:
        """Move the first visible line as little as possible so that the cursor is visible."""
        last = max(0, count - room)
        self._offset = (
            min(self._offset, top, last) if top < self._offset else min(self._offset, last)
        )
        if cursor >= self._offset + room:
            self._offset = cursor - room + 1

    def _text(
        self, state: TopState, scene: Scene, width: int, room: int
    ) -> tuple[list[Line], Shown]:
        lines = [part for line in scene.text for part in fold_line(self._screen.line(line), width)]
        start = min(state.scroll, max(0, len(lines) - room))
        visible: list[Line] = [[(line, "")] for line in lines[start : start + room]]
        return self._lines.fill_room(visible, width, room), Shown(
            height=max(1, room), lines=len(lines)
        )

    def _foot(self, state: TopState, shown: Shown, width: int) -> Line:
        if state.mode is Mode.FILTER:
            return self._lines.crop_line(
                [(f"/{state.filter}", "bold"), ("_   enter keeps it, esc removes it", "dim")], width
            )
        if state.mode is Mode.TEXT:
            last = min(shown.lines, state.scroll + shown.height)
            text = (
                f"{min(state.scroll + 1, last)}-{last} of {shown.lines}   esc back   arrows scroll"
            )
            return self._lines.crop_line([(text, "dim")], width)
        row = min(state.at(shown.rows) + 1, len(shown.rows))
        return self._lines.crop_line(
            [(f"{row} of {len(shown.rows)}   ", ""), (_HINT, "dim")], width
        )


def _none(table: TopTable) -> str:
    """Return what stands in place of rows."""
    return "No row has these words." if table.rows else table.none
