"""Read prometheus-adapter's configuration file: the rules as they are written, with their lines.

A mistake in one rule costs that rule. It is named with its line and the reason. Only a file that
is not YAML is rejected as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import yaml

from apiservice.provider import GroupResource

MAX_BYTES: Final = 1 << 20
"""Bytes of a file; a ConfigMap cannot be larger either."""
MAX_RULES: Final = 1000
"""Rules of one list."""
MAX_ENTRIES: Final = 256
"""Filters, or overrides, of one rule."""
MAX_PROBLEMS: Final = 100
"""Problems that are kept of one file."""
LISTS: Final = ("rules", "externalRules")
_DURATION: Final = re.compile(r"(?:\d+(?:ms|[smhdwy]))+|0")


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
    line: int


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


@dataclass(slots=True)
class RulesFile:
    """The content of a file."""

    custom: list[RuleText] = field(default_factory=list)
    external: list[RuleText] = field(default_factory=list)
    problems: list[RuleProblem] = field(default_factory=list)
    resource_rules: bool = False
    """Whether the file has ``resourceRules``, which are not served."""


class _Bad(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, node: yaml.Node, text: str) -> None:
        super().__init__(text)
        self.line = node.start_mark.line + 1


def read_rules(data: bytes) -> RulesFile:
    """Return the rules of a file.

    Raises:
        RulesFileError: the file is too large, is not YAML, or is not a mapping.
    """
    root = _root(data)
    found = RulesFile()
    if root is None:
        return found
    seen: set[str] = set()
    for key, value in root.value:
        name = _text(key) if isinstance(key, yaml.ScalarNode) else ""
        line = key.start_mark.line + 1
        if name in seen:
            raise RulesFileError(f"line {line}: {name} is given twice")
        seen.add(name)
        if name in LISTS:
            into = found.custom if name == "rules" else found.external
            _read_list(name, value, into, found.problems)
        elif name == "resourceRules":
            found.resource_rules = not _is_null(value)
            _check_resource_rules(value, found.problems)
        else:
            known = ", ".join((*LISTS, "resourceRules"))
            text = f"is not a key of the file; the keys are {known}"
            found.problems.append(RuleProblem(line, name[:60], text, broken=False))
    del found.problems[MAX_PROBLEMS:]
    return found


def _root(data: bytes) -> yaml.MappingNode | None:
    if len(data) > MAX_BYTES:
        raise RulesFileError(f"is larger than {MAX_BYTES} bytes")
    try:
        root = yaml.compose(data.decode("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise RulesFileError(f"{where}is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RulesFileError(f"is not YAML: {' '.join(str(error).split())[:200]}") from None
    if root is None or _is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise RulesFileError("must be a mapping with the key rules or externalRules")
    return root


def _read_list(
    key: str, value: yaml.Node, into: list[RuleText], problems: list[RuleProblem]
) -> None:
    if _is_null(value):
        return
    line = value.start_mark.line + 1
    if not isinstance(value, yaml.SequenceNode):
        raise RulesFileError(f"line {line}: {key} must be a list")
    if len(value.value) > MAX_RULES:
        text = f"has {len(value.value)} rules; those after the first {MAX_RULES} are left out"
        problems.append(RuleProblem(line, key, text, broken=False))
    for index, node in enumerate(value.value[:MAX_RULES]):
        name = f"{key}[{index}]"
        try:
            into.append(_rule(name, node))
        except _Bad as error:
            problems.append(RuleProblem(error.line, name, str(error)))


def _rule(name: str, node: yaml.Node) -> RuleText:
    lines: dict[str, int] = {}
    given: dict[str, object] = {}
    for key, value in _entries(node, _RULE):
        lines[key] = value.start_mark.line + 1
        if not _is_null(value):
            given |= _RULE[key](value)
    return RuleText(name, node.start_mark.line + 1, lines=lines, **given)  # type: ignore[arg-type]  # the keys are its fields


def _entries(
    node: yaml.Node, known: dict[str, Callable[[yaml.Node], dict[str, object]]] | None
) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise _Bad(node, "must be a mapping")
    seen: set[str] = set()
    for key, value in node.value:
        name = _text(key)
        if known is not None and name not in known:
            raise _Bad(key, f"has an unknown key {name[:60]}; the keys are {', '.join(known)}")
        if name in seen:
            raise _Bad(key, f"gives {name[:60]} twice")
        seen.add(name)
        yield name, value


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Bad(node, "must be a text")
    return str(node.value)


def _to(name: str) -> Callable[[yaml.Node], dict[str, object]]:
    return lambda node: {name: _text(node)}


def _boolean(node: yaml.Node) -> dict[str, object]:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
        raise _Bad(node, "namespaced must be true or false")
    return {"namespaced": str(node.value).lower() in ("true", "yes", "on", "y")}


def _filters(node: yaml.Node) -> dict[str, object]:
    if not isinstance(node, yaml.SequenceNode):
        raise _Bad(node, "seriesFilters must be a list")
    _check_count(node, "seriesFilters")
    return {"series_filters": tuple(map(_filter, node.value))}


def _filter(node: yaml.Node) -> Filter:
    given = dict[str, str]()
    for key, value in _entries(node, _FILTER):
        if not _is_null(value) and _text(value):
            given[key] = _text(value)
    if len(given) != 1:
        raise _Bad(node, "a filter must have either is or isNot")
    ((key, expression),) = given.items()
    return Filter(expression, key == "is", node.start_mark.line + 1)


def _resources(node: yaml.Node) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, value in _entries(node, _RESOURCES):
        if not _is_null(value):
            given |= _RESOURCES[key](value)
    return given


def _overrides(node: yaml.Node) -> dict[str, object]:
    found: list[tuple[str, GroupResource]] = []
    if isinstance(node, yaml.MappingNode):
        _check_count(node, "overrides")
    for label, value in _entries(node, None):
        given = {"group": "", "resource": ""}
        for key, text in _entries(value, _GROUP_RESOURCE):
            if not _is_null(text):
                given[key] = _text(text)
        if not given["resource"]:
            raise _Bad(value, f"the override of the label {label[:60]} names no resource")
        found.append((label, GroupResource(given["resource"], given["group"])))
    return {"overrides": tuple(found)}


def _check_count(node: yaml.CollectionNode, key: str) -> None:
    if len(node.value) > MAX_ENTRIES:
        raise _Bad(node, f"{key} has {len(node.value)} entries; the most are {MAX_ENTRIES}")


def _name(node: yaml.Node) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, value in _entries(node, _NAME):
        if not _is_null(value):
            given |= _NAME[key](value)
    return given


_RULE: Final[dict[str, Callable[[yaml.Node], dict[str, object]]]] = {
    "seriesQuery": _to("series_query"),
    "seriesFilters": _filters,
    "resources": _resources,
    "name": _name,
    "metricsQuery": _to("metrics_query"),
}
_FILTER: Final = {"is": _to("is"), "isNot": _to("isNot")}
_RESOURCES: Final = {
    "template": _to("template"),
    "overrides": _overrides,
    "namespaced": _boolean,
}
_GROUP_RESOURCE: Final = {"group": _to("group"), "resource": _to("resource")}
_NAME: Final = {"matches": _to("matches"), "as": _to("as_")}
_RESOURCE_RULE: Final = {
    "containerQuery": _to("container_query"),
    "nodeQuery": _to("node_query"),
    "resources": _resources,
    "containerLabel": _to("container_label"),
}
_RESOURCE_RULES: Final = {"cpu": _to("cpu"), "memory": _to("memory"), "window": _to("window")}


def _check_resource_rules(node: yaml.Node, problems: list[RuleProblem]) -> None:
    """Check ``resourceRules``, although nothing serves them, so that a mistake is found."""
    if _is_null(node):
        return
    line = node.start_mark.line + 1
    try:
        for key, value in _entries(node, _RESOURCE_RULES):
            if key == "window":
                if not _is_null(value) and not _DURATION.fullmatch(_text(value)):
                    raise _Bad(value, f"window: {_text(value)[:60]!r} is not a duration")
                continue
            for inner, given in _entries(value, _RESOURCE_RULE):
                if not _is_null(given):
                    _RESOURCE_RULE[inner](given)
    except _Bad as error:
        problems.append(RuleProblem(error.line, "resourceRules", str(error), broken=False))
        return
    text = (
        "metrics.k8s.io is not served: keep metrics-server or prometheus-adapter for kubectl top "
        "and for HPAs on cpu and memory"
    )
    problems.append(RuleProblem(line, "resourceRules", text, broken=False))
