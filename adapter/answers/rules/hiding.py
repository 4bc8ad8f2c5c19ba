"""Which metrics of the catalogue rules have too, as far as the text of the rules says.

``rules.prefer`` decides who answers for such a name. The series of the store are not known here:
a rule that finds none hides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from adapter.answers.rules.doubts import fixed_metric, fixed_name
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.ruleset import RuleSet
from adapter.answers.rules.seriesquery import fits_all, matchers_of
from adapter.figures import join_names


class Hidden(NamedTuple):
    """A rule, and the names that the catalogue has too."""

    rule: MetricRule
    metrics: Sequence[str]

    @property
    def names(self) -> str:
        """The names, shortened."""
        return join_names(self.metrics)


def find_hidden_metrics(
    rules: RuleSet, metrics: Collection[str], series: Collection[str]
) -> Iterator[Hidden]:
    """Yield the rules that have names of the catalogue.

    Args:
        rules: of a file.
        metrics: the catalogue's names; external ones are the same in lower case.
        series: names that exporters' series have.
    """
    lower = {name.lower() for name in metrics}
    for rule in rules.custom:
        yield from _hidden_by_rule(
            rule, [name for name in _metric_names(rule, series) if name in metrics]
        )
    for rule in rules.external:
        yield from _hidden_by_rule(
            rule, [name for name in _metric_names(rule, series) if name.lower() in lower]
        )


def _hidden_by_rule(rule: MetricRule, metrics: Sequence[str]) -> Iterator[Hidden]:
    if metrics:
        yield Hidden(rule, sorted({*metrics}))


def _metric_names(rule: MetricRule, series: Collection[str]) -> Iterator[str]:
    """Yield the names of a rule's metrics, if the store has these series."""
    name = fixed_metric(rule)
    if name is not None:
        yield name
    if name is not None or fixed_name(rule):
        return
    matchers = [
        matcher for matcher in matchers_of(rule.selector) or () if matcher.label == "__name__"
    ]
    fits = fits_all(matchers)
    for name in series:
        if fits(name) and rule.admits(name):
            yield rule.metric(name)
