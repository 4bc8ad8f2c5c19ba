"""A rule that is ready for use: its expressions and templates are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.answers.rules import matchers
from adapter.answers.rules.compiling import (
    EXAMPLE,
    EXAMPLE_MATCHERS,
    LABEL_EXAMPLE,
    RuleError,
    label_pattern_of,
    pattern_of,
    template_of,
)
from adapter.answers.rules.gotemplate.errors import TemplateError
from adapter.answers.rules.gotemplate.nodes import Branch, Node
from adapter.answers.rules.gotemplate.template import Arguments, GoTemplate
from adapter.answers.rules.pattern import Pattern
from adapter.answers.rules.rulefile import RuleText
from adapter.answers.rules.seriesquery import find_stray_sign, find_unquoted_sign
from apiservice.errors import BadQuery
from apiservice.labels.selector import Selector

LONGEST_QUERY: Final = 64 << 10
"""Characters of a series query."""


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
            (pattern_of("seriesFilters", pattern.expression), pattern.positive)
            for pattern in text.series_filters
        ]
        self._matches = pattern_of("name", text.matches or ".*")
        if text.matches:
            self._filters.append((self._matches, True))
        self.as_ = text.as_ or self._usual_name()
        """The template of the metric's name."""
        self._query = template_of("metricsQuery", text.metrics_query, EXAMPLE)
        self.label_template: GoTemplate | None = None
        self.label_pattern: Pattern | None = None
        if text.template:
            self.label_template = template_of("resources", text.template, LABEL_EXAMPLE)
            self.label_pattern = label_pattern_of(self.label_template)
        self._check_ends()

    def _check_ends(self) -> None:
        """Refuse queries that no engine can read: they may be cut off."""
        if sign := find_stray_sign(self.selector):
            raise RuleError("seriesQuery", f"seriesQuery is cut off, or has a stray {sign}")
        if sign := find_unquoted_sign(self.selector, "(["):
            text = f"seriesQuery has a {sign} outside of quotes: write a selector of series"
            raise RuleError("seriesQuery", text)
        if sign := find_stray_sign(self.example()):
            raise RuleError("metricsQuery", f"metricsQuery is cut off, or has a stray {sign}")

    def example(self) -> str:
        """Return the query for a pod; empty if the template may write others for other objects."""
        if any(isinstance(node, Branch) for node in self.template_nodes):
            return ""
        try:
            return self.render_query("series", EXAMPLE_MATCHERS, "pod")
        except BadQuery:
            return ""

    def has_group(self, name: str) -> bool:
        """Return whether ``matches`` has a capture group."""
        return self._matches.has_group(name)

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
        return "" if captures is None else captures.expand(self.as_)

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

    @property
    def template_nodes(self) -> Sequence[Node]:
        """The nodes of ``metricsQuery``."""
        return self._query.nodes

    def render_query(self, series: str, expressions: str, label: str) -> str:
        """Return the query for objects with a text in place of the label matchers.

        Raises:
            BadQuery: the template fails.
        """
        return self._execute(series, [expressions], {}, [label])

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
