"""Read prometheus-adapter's configuration file: the rules as they are written, with their lines.

A mistake in one rule costs that rule. It is named with its line and the reason. Only a file that
is not YAML is rejected as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import yaml

from adapter.answers.rules.filenodes import (
    BadNode,
    Reader,
    check_count,
    entries,
    is_null,
    resources,
    text_of,
    to_field,
)
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.resourcefile import ResourceTexts, read_resource_rules
from apiservice.provider import GroupResource
from apiservice.runtime.yamltext import YamlError, nodes

MAX_BYTES: Final = 1 << 20
"""Bytes of a file; a ConfigMap cannot be larger either."""
MAX_RULES: Final = 1000
"""Rules of one list."""
MAX_PROBLEMS: Final = 100
"""Problems that are kept of one file."""
LISTS: Final = ("rules", "externalRules")


class RulesFileError(Exception):
    """The file cannot be used at all; the text says why."""


class RuleProblem(NamedTuple):
    """What is wrong with a rule, or is not served."""

    line: int
    """The line of the file on which the mistake is; 0 if there is none."""
    rule: str
    """The rule, such as ``rules[3]``."""
    text: str
    broken: bool = True
    """Whether the rule is left out because of it."""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        effect = "; this rule is left out" if self.broken else ""
        return f"{where}{self.rule}: {self.text}{effect}"


@dataclass(frozen=True, slots=True)
class Filter:
    """An expression that the names of series must match, or must not match."""

    expression: str
    positive: bool


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule as the file has it."""

    name: str
    """Where it is in the file, such as ``rules[3]``."""
    line: int
    series_query: str = ""
    series_filters: tuple[Filter, ...] = ()
    overrides: tuple[tuple[str, GroupResource], ...] = ()
    template: str = ""
    namespaced: bool = True
    matches: str = ""
    as_: str = ""
    metrics_query: str = ""
    lines: dict[str, int] = field(default_factory=dict, compare=False, hash=False)
    """Key -> line."""

    @property
    def size(self) -> int:
        """Characters of the texts that are compiled."""
        filters = sum(len(row.expression) for row in self.series_filters)
        texts = (self.series_query, self.template, self.matches, self.as_, self.metrics_query)
        return filters + sum(map(len, texts))


@dataclass(slots=True)
class RulesFile:
    """The content of a file."""

    custom: list[RuleText] = field(default_factory=list)
    external: list[RuleText] = field(default_factory=list)
    problems: list[RuleProblem] = field(default_factory=list)
    resource: ResourceTexts | None = None
    """``resourceRules``; None if the file has none, or if they have a mistake."""
    resource_line: int = 0
    """The line of ``resourceRules``; 0 without them."""
    resource_problem: RuleProblem | None = None
    """The mistake in ``resourceRules``."""

    @property
    def has_resource_rules(self) -> bool:
        """Whether the file has ``resourceRules``."""
        return self.resource_line > 0


def read_rules(data: bytes) -> RulesFile:
    """Return the rules of a file.

    Raises:
        RulesFileError: the file is too large, is not YAML, or is not a mapping.
    """
    root = _root(data)
    file = RulesFile()
    if root is None:
        return file
    seen_names: set[str] = set()
    for key, value in root.value:
        name = text_of(key) if isinstance(key, yaml.ScalarNode) else ""
        line = key.start_mark.line + 1
        if name in seen_names:
            raise RulesFileError(f"line {line}: {name} is given twice")
        seen_names.add(name)
        if name in LISTS:
            into = file.custom if name == "rules" else file.external
            _read_list(name, value, into, file.problems)
        elif name == "resourceRules":
            _read_resource_rules(value, file)
        else:
            keys = ", ".join((*LISTS, "resourceRules"))
            text = f"is not a key of the file; the keys are {keys}"
            file.problems.append(RuleProblem(line, name[:60], text, broken=False))
    del file.problems[MAX_PROBLEMS:]
    return file


def _root(data: bytes) -> yaml.MappingNode | None:
    if len(data) > MAX_BYTES:
        raise RulesFileError(f"is larger than {MAX_BYTES} bytes")
    try:
        roots = nodes(data)
    except YamlError as error:
        raise RulesFileError(f"is not YAML: {error}") from None
    if len(roots) > 1:
        raise RulesFileError(f"has {len(roots)} documents: write one")
    root = roots[0] if roots else None
    if root is None or is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise RulesFileError("must be a mapping with the key rules or externalRules")
    return root


def _read_list(
    key: str, value: yaml.Node, into: list[RuleText], problems: list[RuleProblem]
) -> None:
    if is_null(value):
        return
    line = value.start_mark.line + 1
    if not isinstance(value, yaml.SequenceNode):
        raise RulesFileError(f"line {line}: {key} must be a list")
    if len(value.value) > MAX_RULES:
        text = f"has {len(value.value)} rules; those after the first {MAX_RULES} are left out"
        problems.append(RuleProblem(line, key, text, broken=False))
    left = MAX_BYTES
    for index, node in enumerate(value.value[:MAX_RULES]):
        name = f"{key}[{index}]"
        try:
            with raise_unexpected_as(BadNode, partial(BadNode, node)):
                rule = _rule(name, node)
        except BadNode as error:
            problems.append(RuleProblem(error.line, name, str(error)))
            continue
        left -= rule.size
        if left < 0:
            text = f"aliases make this list longer than {MAX_BYTES} characters"
            problems.append(RuleProblem(rule.line, name, text))
            break
        into.append(rule)


def _read_resource_rules(value: yaml.Node, file: RulesFile) -> None:
    if is_null(value):
        return
    file.resource_line = value.start_mark.line + 1
    try:
        with raise_unexpected_as(BadNode, partial(BadNode, value)):
            file.resource = read_resource_rules(value)
    except BadNode as error:
        file.resource_problem = RuleProblem(error.line, "resourceRules", str(error))


def _rule(name: str, node: yaml.Node) -> RuleText:
    lines: dict[str, int] = {}
    fields: dict[str, object] = {}
    for key, value in entries(node, _RULE):
        lines[key] = value.start_mark.line + 1
        if not is_null(value):
            fields |= _RULE[key](value)
    return RuleText(name, node.start_mark.line + 1, lines=lines, **fields)  # type: ignore[arg-type]  # the keys are its fields


def _filters(node: yaml.Node) -> dict[str, object]:
    if not isinstance(node, yaml.SequenceNode):
        raise BadNode(node, "seriesFilters must be a list")
    check_count(node, "seriesFilters")
    return {"series_filters": tuple(map(_filter, node.value))}


def _filter(node: yaml.Node) -> Filter:
    expressions = dict[str, str]()
    for key, value in entries(node, _FILTER):
        if not is_null(value) and text_of(value):
            expressions[key] = text_of(value)
    if len(expressions) != 1:
        raise BadNode(node, "a filter must have either is or isNot")
    ((key, expression),) = expressions.items()
    return Filter(expression, key == "is")


def _name(node: yaml.Node) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in entries(node, _NAME):
        if not is_null(value):
            fields |= _NAME[key](value)
    return fields


_RULE: Final[dict[str, Reader]] = {
    "seriesQuery": to_field("series_query"),
    "seriesFilters": _filters,
    "resources": resources,
    "name": _name,
    "metricsQuery": to_field("metrics_query"),
}
_FILTER: Final = {"is": to_field("is"), "isNot": to_field("isNot")}
_NAME: Final = {"matches": to_field("matches"), "as": to_field("as_")}
