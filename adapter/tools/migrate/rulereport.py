"""What is taken over of a configuration: each rule, and what is wrong or doubtful about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.answers.rules.doubts import NEVER, fixed_metric
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.hiding import find_hidden_metrics
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import RuleProblem, RulesFileError, RuleText, read_rules
from adapter.answers.rules.ruleset import rule_set
from adapter.answers.rules.seriesquery import matchers_of
from adapter.pipeline.attribution.serieslabels import DEVICE_LABELS
from adapter.pipeline.catalog import built_in
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.words import NONE, one_line
from adapter.tools.migrate.configfile import Configuration

_LONGEST: Final = 160
"""Characters of a series query that are shown."""


class RuleRow(NamedTuple):
    """A rule of the file."""

    name: str
    line: int
    """0 if the file has no lines that a user can see."""
    series: str
    metric: str
    problem: str = ""
    """Why it is left out; empty if it is taken over."""
    doubts: Sequence[str] = ()
    """Why it can never answer, or may not do what it seems to."""
    hides: str = ""
    """Names of the catalogue that it has too."""
    lost: Sequence[str] = ()
    """Labels in its selector that metric selectors know by the rule and not by the catalogue."""
    filters: str = ""
    query: str = ""

    def json(self) -> dict[str, Any]:
        """The row for programs."""
        return {**self._asdict(), "doubts": list(self.doubts), "lost": list(self.lost)}

    @property
    def never(self) -> bool:
        """Whether it can never answer."""
        return any(text.startswith(NEVER) for text in self.doubts)


class RuleReport(NamedTuple):
    """The rules of one configuration."""

    rows: Sequence[RuleRow]
    remarks: Sequence[str]
    """What is ignored, and is about no single rule."""
    external: bool
    resource: bool
    """Whether the file has rules of this API."""

    @property
    def broken(self) -> Sequence[RuleRow]:
        """The rules that are left out."""
        return [row for row in self.rows if row.problem]


def report_rules(configuration: Configuration) -> RuleReport:
    """Return what is taken over; raises ClientError if the file cannot be used at all."""
    try:
        with raise_unexpected_as(RulesFileError):
            file = read_rules(configuration.content)
            rules = rule_set(file, resource_metrics=file.has_resource_rules)
    except RulesFileError as error:
        raise ClientError(f"{configuration.origin}: {error}") from None
    catalog = built_in()
    compiled = {rule.name: rule for rule in (*rules.custom, *rules.external)}
    hides = {
        row.rule.name: row.names
        for row in find_hidden_metrics(rules, catalog.metrics, catalog.series)
    }
    broken = {problem.rule: problem for problem in rules.problems if problem.broken}
    rows = []
    for text in (*file.custom, *file.external):
        problem = broken.pop(text.name, None)
        row = _row(text, compiled.get(text.name), problem)
        doubts = [
            problem.text
            for problem in rules.problems
            if problem.rule == text.name and not problem.broken
        ]
        row = row._replace(doubts=doubts)
        if text.name in hides:
            row = row._replace(hides=hides[text.name], lost=_lost_labels(text))
        rows.append(row)
    if file.has_resource_rules and "resourceRules" not in broken:
        rows.append(RuleRow("resourceRules", file.resource_line, "", "cpu and memory"))
    rows += [
        RuleRow(problem.rule, problem.line, "", "", problem.text) for problem in broken.values()
    ]
    if not configuration.lines:
        rows = [row._replace(line=0) for row in rows]
    return RuleReport(
        rows,
        [
            _text(problem, configuration)
            for problem in rules.problems
            if _is_of_no_rule(problem, compiled)
        ],
        any(row.name.startswith("externalRules") for row in rows),
        file.has_resource_rules,
    )


def _row(text: RuleText, rule: MetricRule | None, problem: RuleProblem | None) -> RuleRow:
    metric = (fixed_metric(rule) if rule else None) or ""
    if not metric:
        parts = [text.as_, f"from {text.matches}" if text.matches else ""]
        metric = " ".join(filter(None, parts)) or "the series' name"
    filters = [f"{'' if row.positive else 'not '}{row.expression}" for row in text.series_filters]
    line = problem.line if problem else text.line
    return RuleRow(
        text.name,
        line,
        text.series_query,
        metric,
        problem.text if problem else "",
        filters=", ".join(filters),
        query=text.metrics_query,
    )


def _lost_labels(text: RuleText) -> Sequence[str]:
    """Return the labels that a rule's selector names, other than those of objects and devices."""
    labels = {matcher.label for matcher in matchers_of(text.series_query) or ()}
    objects = {label for label, _ in text.overrides} | {"__name__", "namespace", "pod"}
    return sorted(labels - objects - DEVICE_LABELS)


def distinct_texts(rows: Sequence[RuleRow]) -> Sequence[str]:
    """Return a text for each rule: no two are equal unless the rules are."""
    texts = [_of_series(row) for row in rows]
    for more in (_with_filters, _with_query):
        counted = Counter(texts)
        texts = [
            more(row, text) if counted[text] > 1 else text
            for row, text in zip(rows, texts, strict=True)
        ]
    return texts


def _of_series(row: RuleRow) -> str:
    return f"{row.metric}, of {one_line(row.series, _LONGEST) or NONE}"


def _with_filters(row: RuleRow, text: str) -> str:
    return f"{text}, {one_line(row.filters, _LONGEST)}" if row.filters else text


def _with_query(row: RuleRow, text: str) -> str:
    return f"{text}: {one_line(row.query, _LONGEST)}"


def _is_of_no_rule(problem: RuleProblem, compiled: Mapping[str, MetricRule]) -> bool:
    return not problem.broken and problem.rule not in compiled


def _text(problem: RuleProblem, configuration: Configuration) -> str:
    return str(problem if configuration.lines else problem._replace(line=0))
