"""A rule that is ready for use: its expressions and templates are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.rules import matchers
from adapter.rules.gotemplate.errors import TemplateError
from adapter.rules.gotemplate.template import Arguments, GoTemplate
from adapter.rules.pattern import Pattern, PatternError
from adapter.rules.rulefile import RuleProblem, RulesFile, RuleText
from apiservice.errors import BadQuery
from apiservice.labels.selector import Selector

LONGEST_QUERY: Final = 64 << 10
"""Characters of a series query."""
_EXAMPLE: Final = Arguments(
    Series="series",
    LabelMatchers='namespace="a",pod="b"',
    LabelValuesByName={"namespace": "a", "pod": "b"},
    GroupBy="pod",
    GroupBySlice=["pod"],
)
_LABEL_EXAMPLE: Final = Arguments(Group="(?P<group>.+?)", Resource="(?P<resource>.+?)")


class RuleError(ValueError):
    """A rule cannot be used; ``key`` is the key with the mistake."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class RuleObjects(NamedTuple):
    """The objects that a query is about."""

    label: str
    """The label with their names."""
    names: Sequence[str]
    namespace: str | None
    """None if they are not in a namespace."""
    namespace_label: str = ""


class MetricRule:
    """A compiled rule.

    Raises:
        RuleError: at construction, if an expression or template is invalid.
    """

    def __init__(self, text: RuleText) -> None:
        self.text = text
        self.name = text.name
        self.selector = text.series_query
        if not text.series_query.strip():
            raise RuleError("seriesQuery", "seriesQuery is missing")
        if len(text.series_query) > LONGEST_QUERY:
            raise RuleError("seriesQuery", f"seriesQuery has more than {LONGEST_QUERY} characters")
        if not text.metrics_query.strip():
            raise RuleError("metricsQuery", "metricsQuery is missing")
        self._filters = [
            (_pattern("seriesFilters", each.expression), each.positive)
            for each in text.series_filters
        ]
        self._matches = _pattern("name", text.matches or ".*")
        if text.matches:
            self._filters.append((self._matches, True))
        self._as = text.as_ or self._usual_name()
        self._query = _template("metricsQuery", text.metrics_query, _EXAMPLE)
        self.label_template: GoTemplate | None = None
        self.label_pattern: Pattern | None = None
        if text.template:
            self.label_template = _template("resources", text.template, _LABEL_EXAMPLE)
            self.label_pattern = _label_pattern(self.label_template)

    def _usual_name(self) -> str:
        if self._matches.groups > 1:
            raise RuleError(
                "name", "name.as is missing, and name.matches has more than one capture group"
            )
        return "$1" if self._matches.groups else "$0"

    def admits(self, series: str) -> bool:
        """Return whether the filters let a series' name through."""
        return all(pattern.matches(series) == positive for pattern, positive in self._filters)

    def metric(self, series: str) -> str:
        """Return the API name of a series' metric; empty if it has none."""
        captures = self._matches.captures(series)
        return "" if captures is None else captures.expand(self._as)

    def query(self, series: str, objects: RuleObjects, selector: Selector) -> str:
        """Return the query for the metric of objects.

        Raises:
            BadQuery: PromQL cannot express the selector, or the template fails.
        """
        expressions, values = _requirements(selector)
        if objects.namespace is not None:
            label = objects.namespace_label
            expressions.append(matchers.matcher(label, "=", objects.namespace))
            values[label] = objects.namespace
        expressions.append(matchers.of_names(objects.label, objects.names))
        values[objects.label] = "|".join(objects.names)
        return self._execute(series, expressions, values, [objects.label])

    def external_query(
        self, series: str, namespace: str | None, label: str, selector: Selector
    ) -> str:
        """Return the query for an external metric; ``namespace`` is None if it is not limited.

        Raises:
            BadQuery: as for :meth:`query`.
        """
        expressions, values = _requirements(selector)
        if namespace is not None:
            expressions.append(matchers.matcher(label, "=", namespace))
            values[label] = namespace
        return self._execute(series, expressions, values, [])

    def _execute(
        self, series: str, expressions: list[str], values: dict[str, str], group_by: list[str]
    ) -> str:
        arguments = Arguments(
            Series=series,
            LabelMatchers=",".join(expressions),
            LabelValuesByName=values,
            GroupBy=",".join(group_by),
            GroupBySlice=group_by,
        )
        try:
            query = self._query.execute(arguments)
        except TemplateError as error:
            raise BadQuery(f"{self.name}: metricsQuery: {error}") from None
        if not query:
            raise BadQuery(f"{self.name}: metricsQuery gives an empty query")
        return query


def _requirements(selector: Selector) -> tuple[list[str], dict[str, str]]:
    expressions: list[str] = []
    values: dict[str, str] = {}
    for requirement in selector.requirements:
        expression, value = matchers.of_requirement(requirement)
        expressions.append(expression)
        values[requirement.key] = value
    return expressions, values


def _pattern(key: str, text: str) -> Pattern:
    try:
        return Pattern(text)
    except PatternError as error:
        raise RuleError(key, f"{key}: {text[:80]!r} is not a regular expression: {error}") from None


def _template(key: str, text: str, example: Arguments) -> GoTemplate:
    try:
        template = GoTemplate(text)
        template.check(example)
    except TemplateError as error:
        raise RuleError(key, f"{key}: the template {text[:80]!r}: {error}") from None
    return template


def _label_pattern(template: GoTemplate) -> Pattern:
    """Return the expression that recognizes the labels which a template writes."""
    try:
        text = template.execute(_LABEL_EXAMPLE)
    except TemplateError as error:
        raise RuleError("resources", f"resources.template: {error}") from None
    if "(?P<resource>" not in text:
        raise RuleError("resources", "resources.template does not contain <<.Resource>>")
    return _pattern("resources", f"^{text}$")


def compile_rules(texts: Sequence[RuleText], problems: list[RuleProblem]) -> list[MetricRule]:
    """Return the rules that can be used, and add what is wrong with the others to ``problems``."""
    rules: list[MetricRule] = []
    for text in texts:
        try:
            rules.append(MetricRule(text))
        except RuleError as error:
            line = text.lines.get(error.key, text.line)
            problems.append(RuleProblem(line, text.name, str(error)))
    return rules


class RuleSet(NamedTuple):
    """The rules of a file, and what is wrong with it."""

    custom: Sequence[MetricRule] = ()
    external: Sequence[MetricRule] = ()
    problems: Sequence[RuleProblem] = ()
    resource_rules: bool = False


def rule_set(file: RulesFile) -> RuleSet:
    """Return the usable rules of a file."""
    problems = list(file.problems)
    custom = compile_rules(file.custom, problems)
    external = compile_rules(file.external, problems)
    return RuleSet(custom, external, tuple(sorted(problems)), file.resource_rules)
