"""The compiled rules of cpu and memory: their queries for the pods of a namespace and for nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from adapter.answers.rules import matchers
from adapter.answers.rules.compiling import LABEL_EXAMPLE, RuleError, label_pattern_of, template_of
from adapter.answers.rules.gotemplate.errors import TemplateError
from adapter.answers.rules.gotemplate.template import Arguments, GoTemplate
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.kinds import KindTable
from adapter.answers.rules.labels import NAMESPACES, ResourceLabels
from adapter.answers.rules.pattern import Pattern
from adapter.answers.rules.resourcefile import ResourceText
from adapter.answers.rules.rulefile import RuleProblem, RulesFile
from apiservice.errors import Unavailable
from apiservice.provider import GroupResource

PODS: Final = GroupResource("pods", "")
NODES: Final = GroupResource("nodes", "")
_EXAMPLE: Final = Arguments(
    Series="",
    LabelMatchers='namespace="a",pod="b"',
    LabelValuesByName={"namespace": "a", "pod": "b"},
    GroupBy="pod,container",
    GroupBySlice=["pod", "container"],
)


class UsageQuery(NamedTuple):
    """A query for the usage of several objects."""

    text: str
    label: str
    """The label with the objects' names."""
    container_label: str = ""


class ResourceRule:
    """The compiled rule of cpu or memory.

    Raises:
        RuleError: at construction, if a template is invalid.
    """

    def __init__(self, text: ResourceText) -> None:
        self.text = text
        self.name = text.name
        self._pods = _query("containerQuery", text.container_query)
        self._nodes = _query("nodeQuery", text.node_query)
        self.label_template: GoTemplate | None = None
        self.label_pattern: Pattern | None = None
        if text.template:
            self.label_template = template_of("resources", text.template, LABEL_EXAMPLE)
            self.label_pattern = label_pattern_of(self.label_template)
        self._labels: tuple[KindTable | None, ResourceLabels | None] = (None, None)

    def pods(self, kinds: KindTable, namespace: str, names: Sequence[str]) -> UsageQuery | None:
        """Return the query for pods of one namespace; None without ``containerQuery``.

        Raises:
            Unavailable: the rule maps no label to pods or namespaces, or its template fails.
        """
        if self._pods is None:
            return None
        space, label = self._label(kinds, NAMESPACES), self._label(kinds, PODS)
        container = self.text.container_label
        limits = [(space, [namespace]), (label, names)]
        text = self._execute(self._pods, limits, [label, container])
        return UsageQuery(text, label, container)

    def nodes(self, kinds: KindTable, names: Sequence[str]) -> UsageQuery | None:
        """Return the query for nodes; None without ``nodeQuery``.

        Raises:
            Unavailable: the rule maps no label to nodes, or its template fails.
        """
        if self._nodes is None:
            return None
        label = self._label(kinds, NODES)
        return UsageQuery(self._execute(self._nodes, [(label, names)], [label]), label)

    def _label(self, kinds: KindTable, resource: GroupResource) -> str:
        last_kinds, labels = self._labels
        if labels is None or last_kinds is not kinds:
            labels = ResourceLabels(self, kinds)
            self._labels = (kinds, labels)
        label = labels.label(resource, ())
        if label is None:
            raise Unavailable(
                f"{self.name} maps no label to {resource}; fix: add an override for it"
            )
        return label

    def _execute(
        self, template: GoTemplate, limits: Sequence[tuple[str, Sequence[str]]], by: list[str]
    ) -> str:
        arguments = Arguments(
            Series="",
            LabelMatchers=",".join(matchers.of_names(label, names) for label, names in limits),
            LabelValuesByName={label: "|".join(names) for label, names in limits},
            GroupBy=",".join(by),
            GroupBySlice=by,
        )
        try:
            return template.execute(arguments)
        except TemplateError as error:
            raise Unavailable(f"{self.name}: the query's template fails: {error}") from None


class ResourceRules(NamedTuple):
    """The rules of ``metrics.k8s.io``."""

    cpu: ResourceRule
    memory: ResourceRule
    window: int
    """Milliseconds over which the queries compute their values."""


def compile_resource_rules(file: RulesFile, problems: list[RuleProblem]) -> ResourceRules | None:
    """Return ``resourceRules``; None if there are none that can be used.

    A mistake is added to ``problems``.
    """
    if file.resource_problem is not None:
        problems.append(file.resource_problem)
    if not file.has_resource_rules:
        missing = "is missing, so metrics.k8s.io has no metrics"
        problems.append(RuleProblem(0, "resourceRules", missing, broken=False))
    texts = file.resource
    if texts is None:
        return None
    rules: list[ResourceRule] = []
    for text in (texts.cpu, texts.memory):
        try:
            with raise_unexpected_as(RuleError, partial(RuleError, "")):
                rules.append(ResourceRule(text))
        except RuleError as error:
            line = text.lines.get(error.key, text.line)
            problems.append(RuleProblem(line, text.name, str(error)))
        else:
            problems += _gaps(text)
    if len(rules) < 2:
        return None
    cpu, memory = rules
    return ResourceRules(cpu, memory, texts.window)


def _gaps(text: ResourceText) -> Iterator[RuleProblem]:
    """Yield what a rule lacks: both cpu and memory are needed for any metric."""
    for query, what in (("containerQuery", "pods"), ("nodeQuery", "nodes")):
        if not (text.container_query if what == "pods" else text.node_query):
            missing = f"{query} is missing, so metrics.k8s.io has no metrics of {what}"
            yield RuleProblem(text.line, text.name, missing, broken=False)


def _query(key: str, text: str) -> GoTemplate | None:
    return template_of(key, text, _EXAMPLE) if text else None
