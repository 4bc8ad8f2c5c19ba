"""Which label of a series names which resource, by a rule's overrides and template."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from adapter.answers.rules.gotemplate.errors import TemplateError
from adapter.answers.rules.gotemplate.template import Arguments, GoTemplate
from adapter.answers.rules.kinds import KindTable, ResourceKind
from adapter.answers.rules.pattern import Pattern
from apiservice.provider import GroupResource

NAMESPACES: Final = GroupResource("namespaces", "")
ROOT: Final = frozenset(
    {NAMESPACES, GroupResource("nodes", ""), GroupResource("persistentvolumes", "")}
)
"""Resources whose metrics are requested without a namespace."""


class LabelText(Protocol):
    """A rule as the file has it."""

    @property
    def overrides(self) -> tuple[tuple[str, GroupResource], ...]:
        """Labels, and the resource that each names."""


class LabelRule(Protocol):
    """A rule that maps labels to resources."""

    label_template: GoTemplate | None
    """Makes the label of a resource."""
    label_pattern: Pattern | None
    """Recognizes such a label."""

    @property
    def text(self) -> LabelText:
        """The rule as the file has it."""


class ResourceLabels:
    """The labels of one rule, with the resources of the cluster."""

    def __init__(self, rule: LabelRule, kinds: KindTable) -> None:
        self._rule = rule
        self._kinds = kinds
        self._by_label: dict[str, ResourceKind | None] = {}
        self._by_resource: dict[GroupResource, list[str]] = {}
        self.unknown: list[tuple[str, GroupResource]] = []
        """Overrides whose resource the cluster does not have."""
        for label, wanted in rule.text.overrides:
            kind = kinds.find(wanted)
            self._by_label[label] = kind
            if kind is None:
                self.unknown.append((label, wanted))
            else:
                self._by_resource.setdefault(kind.name, []).append(label)

    def resource(self, label: str) -> ResourceKind | None:
        """Return the resource that a label names; None if it names none."""
        if label not in self._by_label:
            self._by_label[label] = self._recognize_label(label)
        return self._by_label[label]

    def _recognize_label(self, label: str) -> ResourceKind | None:
        pattern = self._rule.label_pattern
        captures = None if pattern is None else pattern.captures(label)
        if captures is None:
            return None
        return self._kinds.find(GroupResource(captures.group("resource"), captures.group("group")))

    def label(self, resource: GroupResource, present: Collection[str]) -> str | None:
        """Return the label that names objects of a resource; None if the rule has none.

        Args:
            present: labels of the series; of several overrides, one that the series has.
        """
        candidates = self._by_resource.get(resource)
        if candidates is None:
            made = self._make_label(resource)
            candidates = self._by_resource[resource] = [] if made is None else [made]
        on_series = (label for label in candidates if label in present)
        return next(on_series, None) or next(iter(candidates), None)

    def _make_label(self, resource: GroupResource) -> str | None:
        template = self._rule.label_template
        singular = self._kinds.singular(resource.resource)
        if template is None or singular is None:
            return None
        group = resource.group.replace(".", "_").replace("-", "_")
        try:
            return template.execute(Arguments(Group=group, Resource=singular)) or None
        except TemplateError:
            return None
