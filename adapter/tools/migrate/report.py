"""The report of ``migrate prometheus-adapter``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.config.process.output import Mark, Screen, table
from adapter.figures import count
from adapter.pipeline.attribution.serieslabels import DEVICE_LABELS
from adapter.tools.client.access import Json
from adapter.tools.client.command import BLOCKED, FINE
from adapter.tools.migrate.arguments import Taken
from adapter.tools.migrate.comparison import Comparison
from adapter.tools.migrate.hpametrics import LostKeys, MetricUse
from adapter.tools.migrate.rulereport import RuleReport, RuleRow, distinct_texts
from adapter.tools.migrate.values import values_text

DIFFERENCES: Final = (
    "NaN and infinite values are left out; prometheus-adapter reports them as 0",
    "values have the time at which Prometheus evaluated the query, and are rounded to thousandths",
    "if Prometheus fails, the last answer serves up to the age limit, and then requests get 503",
    "a selector that PromQL cannot express gets 400 with the reason instead of 500",
    "a metric that a rule and the catalogue both have comes from the rule (rules.prefer)",
    "metric selectors know every label of a rule's series, and of a built-in metric only "
    + ", ".join(sorted(DEVICE_LABELS)),
)
"""What differs for every configuration; docs/rules.md has the whole list."""
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What is taken over, and what to do."""

    origin: str
    rules: RuleReport
    values: Mapping[str, Any]
    steps: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str] = ()
    arguments: Sequence[Taken] = ()
    apis: Sequence[tuple[str, str, str]] = ()
    """APIService, its Service, and what becomes of it; empty for a file."""
    hpas: Sequence[MetricUse] = ()
    unreadable: Sequence[str] = ()
    """HPAs that cannot be read."""
    comparison: Comparison | None = field(default=None)
    lost: Sequence[LostKeys] = ()

    @property
    def status(self) -> int:
        """The exit status."""
        lost = self.rules.broken or self.unreadable
        failed = self.comparison is not None and not self.comparison.good
        return BLOCKED if lost or failed else FINE

    def lines(self, screen: Screen) -> list[str]:
        """The report as text."""
        parts = [
            [screen.style(self.origin, "bold")],
            self._apis(),
            self._rules(screen),
            self._arguments(),
            self._hpas(),
            [] if self.comparison is None else self.comparison.lines(screen),
            self._bullet_lines(
                "What differs (docs/rules.md has the whole list)", DIFFERENCES, screen
            ),
            self._bullet_lines("Remarks", self.notes, screen),
            ["Values for the chart:", *self._values()],
            self._steps(screen),
        ]
        return [line for part in parts if part for line in (*part, "")][:-1]

    def json(self) -> Json:
        """The report for programs."""
        return {
            "source": self.origin,
            "apiServices": [
                {"name": name, "service": service, "effect": effect}
                for name, service, effect in self.apis
            ],
            "rules": [row.json() for row in self.rules.rows],
            "arguments": [
                {"argument": row.argument, "effect": row.effect, "todo": row.todo}
                for row in self.arguments
            ],
            "metrics": [{**row._asdict(), "hpas": list(row.hpas)} for row in self.hpas],
            "unreadableHpas": list(self.unreadable),
            "lostSelectorKeys": [{**row._asdict(), "keys": list(row.keys)} for row in self.lost],
            "comparison": None if self.comparison is None else self.comparison.json(),
            "differences": list(DIFFERENCES),
            "remarks": list(self.notes),
            "values": dict(self.values),
            "steps": [{"step": step, "commands": list(rows)} for step, rows in self.steps],
        }

    def _apis(self) -> list[str]:
        return ["APIs:", *table(self.apis, indent="  ")] if self.apis else []

    def _rules(self, screen: Screen) -> list[str]:
        rows, broken = self.rules.rows, len(self.rules.broken)
        never = sum(row.never for row in rows)
        head = f"Rules: {count(len(rows) - broken, 'rule')} taken over"
        head += f", {broken} not" if broken else ""
        head += f"; {never} of them can never answer, here and there" if never else ""
        lines = [f"{head}:" if rows else "Rules: the configuration has no rules"]
        for row, text in zip(rows, distinct_texts(rows), strict=True):
            lines += _rule_lines(row, text, screen)
        return [*lines, *(line for text in self.rules.remarks for line in screen.wrap(text, "  "))]

    def _arguments(self) -> list[str]:
        if not self.arguments:
            return []
        rows = [(row.argument, "!" if row.todo else "", row.effect) for row in self.arguments]
        return [
            "Arguments and pods, with ! where you must do something:",
            *table(rows, indent="  "),
        ]

    def _hpas(self) -> list[str]:
        rows = [(row.metric, row.kind, _shorten_names(row.hpas)) for row in self.hpas]
        lines = ["HPAs on its metrics:", *table(rows, indent="  ")] if rows else []
        lines += [f"  not readable: {text}" for text in self.unreadable]
        if self.lost:
            lines += ["Keys of metric selectors that only a rule serves, lost without it:"]
            lines += table(
                [(row.metric, row.hpa, ", ".join(row.keys)) for row in self.lost], indent="  "
            )
        return lines

    def _bullet_lines(self, title: str, texts: Sequence[str], screen: Screen) -> list[str]:
        wrapped = [line for text in texts for line in screen.wrap(f"- {text}", "  ")]
        return [f"{title}:", *wrapped] if wrapped else []

    def _values(self) -> list[str]:
        return [f"  {line}" for line in values_text(self.values, self.arguments).splitlines()]

    def _steps(self, screen: Screen) -> list[str]:
        lines = ["Next:"]
        for number, (step, rows) in enumerate(self.steps, 1):
            lines += screen.wrap(f"{number}. {step}", "  ")
            lines += [f"     {row}" for row in rows]
        return lines


def _shorten_names(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _rule_lines(row: RuleRow, text: str, screen: Screen) -> list[str]:
    mark: Mark = "bad" if row.problem else "warning" if row.doubts else "good"
    where = f"{row.name}, line {row.line}" if row.line else row.name
    remarks = [*row.doubts]
    if row.hides:
        remarks.append(f"the catalogue has {row.hides} too: rules.prefer decides, rules by default")
    if row.lost:
        remarks.append(f"without this rule, metric selectors lose {', '.join(row.lost)}")
    lines = screen.wrap(f"{screen.mark(mark)} {where}: {row.problem or text}", "  ", "    ")
    return [*lines, *(line for remark in remarks for line in screen.wrap(remark, "    ", "      "))]
