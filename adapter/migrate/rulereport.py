"""What is taken over of a configuration: each rule, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adapter.client.errors import ClientError
from adapter.migrate.configfile import Configuration
from adapter.rules.rulefile import RuleProblem, RulesFileError, read_rules
from adapter.rules.ruleset import rule_set


class RuleRow(NamedTuple):
    """A rule of the file."""

    name: str
    line: int
    """0 if the file has no lines that a user can see."""
    series: str
    metric: str
    problem: str = ""
    """Why it is left out; empty if it is taken over."""


class RuleReport(NamedTuple):
    """The rules of one configuration."""

    rows: Sequence[RuleRow]
    remarks: Sequence[str]
    """What is ignored, and costs no rule."""
    custom: bool
    external: bool
    resource: bool
    """Whether the file has rules of this API."""

    @property
    def broken(self) -> Sequence[RuleRow]:
        """The rules that are left out."""
        return [row for row in self.rows if row.problem]


def report_rules(found: Configuration) -> RuleReport:
    """Return what is taken over; raises ClientError if the file cannot be used at all."""
    try:
        file = read_rules(found.content)
    except RulesFileError as error:
        raise ClientError(f"{found.origin}: {error}") from None
    rules = rule_set(file, resource_metrics=file.has_resource_rules)
    broken = {each.rule: each for each in rules.problems if each.broken}
    remarks = [_text(each, found) for each in rules.problems if not each.broken]
    rows = []
    for text in (*file.custom, *file.external):
        problem = broken.pop(text.name, None)
        line = (problem.line if problem else text.line) if found.lines else 0
        metric = text.as_ or (f"from {text.matches}" if text.matches else "the series' name")
        rows.append(
            RuleRow(text.name, line, text.series_query, metric, problem.text if problem else "")
        )
    if file.has_resource_rules and "resourceRules" not in broken:
        line = file.resource_line if found.lines else 0
        rows.append(RuleRow("resourceRules", line, "", "cpu and memory"))
    rows += [
        RuleRow(each.rule, each.line if found.lines else 0, "", "", each.text)
        for each in broken.values()
    ]
    return RuleReport(
        rows,
        remarks,
        any(row.name.startswith("rules") for row in rows),
        any(row.name.startswith("externalRules") for row in rows),
        file.has_resource_rules,
    )


def _text(problem: RuleProblem, found: Configuration) -> str:
    return str(problem if found.lines else problem._replace(line=0))
