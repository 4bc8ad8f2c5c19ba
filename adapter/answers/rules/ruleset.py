"""The rules of a file, compiled, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from adapter.answers.rules.compiling import RuleError
from adapter.answers.rules.doubts import doubts_of
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.resourcerule import ResourceRules, compile_resource_rules
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import (
    RuleProblem,
    RulesFile,
    RulesFileError,
    RuleText,
    read_rules,
)


def compile_rules(texts: Sequence[RuleText], problems: list[RuleProblem]) -> list[MetricRule]:
    """Return the rules that can be used, and add what is wrong with the others to ``problems``."""
    rules: list[MetricRule] = []
    for text in texts:
        try:
            with raise_unexpected_as(RuleError, partial(RuleError, "")):
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
    resource: ResourceRules | None = None
    """``resourceRules``; None if they are not served."""


def rule_set(file: RulesFile, *, resource_metrics: bool = False) -> RuleSet:
    """Return the usable rules of a file.

    Args:
        file: as read.
        resource_metrics: whether ``resourceRules`` are served.
    """
    problems = list(file.problems)
    custom = compile_rules(file.custom, problems)
    external = compile_rules(file.external, problems)
    problems += doubts_of(custom, external)
    resource = None
    if resource_metrics:
        resource = compile_resource_rules(file, problems)
    elif file.has_resource_rules:
        problems += _unserved_problems(file)
    return RuleSet(custom, external, tuple(sorted(problems)), resource)


def rules_of(data: bytes, *, resource_metrics: bool = False) -> RuleSet:
    """Return the usable rules of a file's content.

    Raises:
        RulesFileError: it cannot be used at all.
    """
    with raise_unexpected_as(RulesFileError):
        return rule_set(read_rules(data), resource_metrics=resource_metrics)


def _unserved_problems(file: RulesFile) -> Iterator[RuleProblem]:
    """Yield what is wrong with ``resourceRules`` that are not served."""
    line = file.resource_line
    text = (
        "metrics.k8s.io is not served: set rules.resource_metrics to true, or keep metrics-server "
        "for kubectl top and for HPAs on cpu and memory"
    )
    yield RuleProblem(line, "resourceRules", text, broken=False)
    if file.resource_problem is not None:
        yield file.resource_problem._replace(broken=False)
