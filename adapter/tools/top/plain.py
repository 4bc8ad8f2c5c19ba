"""``top`` without a terminal: one table, as ``kubectl top`` prints it, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from adapter.config.process.output import Colour, Screen, table
from adapter.tools.client.access import Api, Json
from adapter.tools.client.command import FINE, UNSEEN, complain
from adapter.tools.client.errors import ClientError
from adapter.tools.client.naming import check_namespace
from adapter.tools.top.facts import ClusterLists, ReadScope, look
from adapter.tools.top.order import Sort, order_rows
from adapter.tools.top.rows import TopRow
from adapter.tools.top.summaries import tables_of
from adapter.tools.top.tables import DASH, NEEDS, READS, TopTable, ViewName

_WIDE: Final = 5
"""Columns of this rank are those of ``-o wide``."""
_COLOURS: Final[dict[str, Colour]] = {"good": "green", "warning": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class PlainOptions:
    """What is shown, and how."""

    view: ViewName
    sort_by: str = ""
    reverse: bool = False
    headers: bool = True
    wide: bool = False


@dataclass(frozen=True, slots=True)
class PlainReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    facts: ClusterLists
    scope: ReadScope
    options: PlainOptions

    @property
    def status(self) -> int:
        """See the port: 2 if a list could not be read; the others are shown."""
        return UNSEEN if self.facts.problems else FINE

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        tables = self.tables()
        if self.options.view != "overview":
            return self._table(tables[0])
        verdict = self.facts.verdict()
        colour = _COLOURS.get(verdict.level)
        lines = [screen.style(verdict.text, colour) if colour else verdict.text]
        for part in tables:
            lines += ["", screen.style(part.title, "bold")]
            rows = self._table(part) if part.rows else [part.none]
            lines += [f"  {line}" for line in rows]
        return lines

    def json(self) -> Json:
        """See the port: texts as in the table, null for a missing value."""
        body: Json = {
            "view": self.options.view,
            "time": datetime.fromtimestamp(int(self.facts.at), UTC).isoformat(),
            "namespace": self.scope.namespace or None,
            "problems": self.facts.texts,
        }
        tables = self.tables()
        if self.options.view != "overview":
            notes = {"notes": list(tables[0].notes)} if tables[0].notes else {}
            return body | {"rows": self._rows(tables[0])} | notes
        parts = [{"title": part.title, "rows": self._rows(part)} for part in tables]
        return body | {"verdict": self.facts.verdict().json(), "parts": parts}

    def tables(self) -> list[TopTable]:
        """Return the tables of the view."""
        everywhere = not self.scope.namespace
        return tables_of(self.options.view, self.facts, everywhere=everywhere)

    def _order_rows(self, top_table: TopTable) -> Sequence[TopRow]:
        if top_table.title:
            return top_table.rows
        options = self.options
        column = column_of(top_table, options.sort_by) if options.sort_by else top_table.sort
        return order_rows(top_table, Sort(column, options.reverse))

    def _table(self, top_table: TopTable) -> list[str]:
        places = [
            at
            for at, head in enumerate(top_table.columns)
            if self.options.wide or head.rank < _WIDE
        ]
        rows = [[row.cells[at] or DASH for at in places] for row in self._order_rows(top_table)]
        notes = top_table.notes if self.options.headers else ()
        if not rows:
            return [f"{top_table.none}{self._place()}", *notes] if self.options.headers else []
        header = [top_table.columns[at].name for at in places] if self.options.headers else ()
        return [*table(rows, header), *(["", *notes] if notes else [])]

    def _place(self) -> str:
        """Return where nothing was found, and how to look elsewhere."""
        if self.options.view in ("gpus", "nodes", "pools") or not self.scope.namespace:
            return ""
        return f" Only namespace {self.scope.namespace} was read; -A reads all."

    def _rows(self, top_table: TopTable) -> list[Json]:
        if self.options.view == "hpas" and self.facts.hpas is not None:
            by_key = {(state.namespace, state.name): state for state in self.facts.hpas}
            keys = [(row.key.namespace, row.key.name) for row in self._order_rows(top_table)]
            return [by_key[key].json() for key in keys]
        names = [_camel(column.name) for column in top_table.columns]
        return [
            {"namespace": row.key.namespace or None, **dict(zip(names, row.cells, strict=True))}
            for row in self._order_rows(top_table)
        ]


def _camel(name: str) -> str:
    first, *rest = name.lower().split("-")
    return first + "".join(part.capitalize() for part in rest)


def column_of(top_table: TopTable, name: str) -> str:
    """Return the column of a name in any case.

    Raises:
        ClientError: the table has no such column.
    """
    names = [column.name for column in top_table.columns]
    if name.upper() not in names:
        choices = ", ".join(column.lower() for column in names)
        raise ClientError(f"--sort-by {name}: this table has the columns {choices}")
    return name.upper()


async def report(api: Api, scope: ReadScope, options: PlainOptions) -> PlainReport:
    """Read what a view needs.

    Raises:
        ClientError: none of it could be read, the view has no column of ``--sort-by``, or the
            namespace does not exist.
    """
    names = NEEDS[options.view]
    facts = await look(api, scope, READS[options.view], ClusterLists())
    if not any(facts.has(name) for name in names):
        raise facts.problems[names[0]]
    plain_report = PlainReport(facts, scope, options)
    if options.sort_by:
        column_of(plain_report.tables()[0], options.sort_by)
    if scope.namespace and not any(part.rows for part in plain_report.tables()):
        await check_namespace(api.within(scope.namespace))
    for error in dict.fromkeys(map(str, facts.problems.values())):
        complain(ClientError(error))
    return plain_report
