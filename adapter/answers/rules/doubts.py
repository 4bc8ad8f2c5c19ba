"""What is doubtful about rules by their text alone: those that can never answer, and clashes.

Such a rule costs nothing and stays in use, because the other program has it too. It is named, so
that nobody takes it for one that answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.kinds import BUILT_IN, KindTable
from adapter.answers.rules.labels import NAMESPACES, ROOT
from adapter.answers.rules.pattern import Captures, references
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import RuleProblem
from adapter.answers.rules.seriesquery import Matcher, fits_all, matchers_of, words_of
from apiservice.provider import GroupResource

NEVER: Final = "never answers"
"""Begins the text about a rule that can give no value."""
_NOTHING: Final = Captures(("",), {})
_KINDS: Final = KindTable(BUILT_IN)
_AGGREGATIONS: Final = frozenset(
    {*("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile")}
)
_GROUPINGS: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})


class _UndecidedError(Exception):
    """The program fails on a rule; the rule stays in use."""


def doubts_of(
    custom: Sequence[MetricRule], external: Sequence[MetricRule]
) -> Iterator[RuleProblem]:
    """Yield what is doubtful about the rules of a file."""
    for rules, objects in ((custom, True), (external, False)):
        names: dict[str, list[MetricRule]] = {}
        for rule in rules:
            try:
                with raise_unexpected_as(_UndecidedError):
                    yield from _doubts_of_rule(rule, objects=objects)
                    names.setdefault(fixed_metric(rule) or "", []).append(rule)
            except _UndecidedError as error:
                yield _problem(rule, "", str(error))
        names.pop("", None)
        for name, same in names.items():
            yield from _clashes(name, same, objects=objects)


def _doubts_of_rule(rule: MetricRule, *, objects: bool) -> list[RuleProblem]:
    never = [(key, f"{NEVER}: {text}") for key, text in _why_never(rule, objects=objects)]
    rows = [*never, *_hints(rule, objects=objects)]
    return [_problem(rule, key, text) for key, text in rows]


def fixed_metric(rule: MetricRule) -> str | None:
    """Return the name of a rule's metric; None if it depends on the series, or has no series."""
    name = fixed_name(rule)
    if name:
        return rule.metric(name) if rule.admits(name) else None
    if any(map(rule.has_group, references(rule.as_))):
        return None
    return _NOTHING.expand(rule.as_)


def fixed_name(rule: MetricRule) -> str:
    """Return the name of the series that a rule selects; empty if it may select several."""
    matchers = matchers_of(rule.selector) or ()
    names = {part.value for part in matchers if part.label == "__name__" and part.sign == "="}
    return names.pop() if len(names) == 1 else ""


def _problem(rule: MetricRule, key: str, text: str) -> RuleProblem:
    return RuleProblem(rule.text.lines.get(key, rule.text.line), rule.name, text, broken=False)


def _why_never(rule: MetricRule, *, objects: bool) -> Iterator[tuple[str, str]]:
    matchers = matchers_of(rule.selector) or ()
    label = _contradiction(matchers)
    if label:
        yield "seriesQuery", f"the matchers of {label} exclude each other"
    name = fixed_name(rule)
    if name and not rule.admits(name):
        yield "name", f"seriesFilters or name.matches leave out {name}, its only series"
    elif why := _why_unreachable(rule):
        yield "name", why
    if objects:
        excluded = {matcher.label for matcher in matchers if matcher[1:] == ("=", "")}
        why = _why_without_objects(rule, excluded)
        if why:
            yield "resources", why


def _contradiction(matchers: Sequence[Matcher]) -> str:
    """Return a label for which no value fits all of its matchers; empty without one."""
    for matcher in matchers:
        if matcher.sign != "=":
            continue
        for other in matchers:
            if other.label == matcher.label and not fits_all([other])(matcher.value):
                return matcher.label
    return ""


def _why_unreachable(rule: MetricRule) -> str:
    """Return why no request can name a rule's metric; empty if one can.

    An HPA's metric is a segment of a path: ``.``, ``..``, ``/`` and ``%`` are refused
    (kubernetes/kubernetes, ``pkg/apis/autoscaling/validation``).
    """
    metric = fixed_metric(rule)
    if metric is None:
        return ""
    if not metric:
        return f"name.as {rule.as_[:60]!r} gives an empty name{_hint(rule)}"
    if metric in (".", "..") or "/" in metric or "%" in metric:
        return f"{metric[:60]!r} is not a name that an HPA can contain"
    return ""


def _why_without_objects(rule: MetricRule, excluded: set[str]) -> str:
    """Return why a rule's metric belongs to no object; empty if it may belong to one."""
    text = rule.text
    if text.template:
        return ""
    labels = {label: wanted for label, wanted in text.overrides if label not in excluded}
    if not labels:
        return (
            "resources maps no label to an object, so the metric belongs to none: add overrides, "
            "or make it an external rule"
            if not text.overrides
            else "seriesQuery excludes every label that resources maps to an object"
        )
    kinds = [_KINDS.find(wanted) for wanted in labels.values()]
    names = [kind.name for kind in kinds if kind is not None]
    if len(names) < len(kinds) or NAMESPACES in names or ROOT.intersection(names):
        return ""
    resources = _resource_names(names)
    return f"resources maps labels to {resources}, and none to their namespace: add an override"


def _resource_names(resources: Sequence[GroupResource]) -> str:
    return ", ".join(sorted({resource.resource for resource in resources}))


def _hints(rule: MetricRule, *, objects: bool) -> Iterator[tuple[str, str]]:
    """Yield what a rule probably does not mean."""
    lost = [name for name in references(rule.as_) if not rule.has_group(name)]
    if lost and not _why_unreachable(rule):
        yield "name", f"name.as refers to {', '.join(lost)}, which matches lacks{_hint(rule)}"
    matchers = matchers_of(rule.selector)
    if matchers is not None and fits_all(matchers)(""):
        text = "Prometheus refuses a seriesQuery without a name or another matcher that needs one"
        yield "seriesQuery", text
    if objects and _drops_all_labels(rule):
        yield (
            "metricsQuery",
            "the query drops every label, so a Pods metric has no value: add by (<<.GroupBy>>)",
        )


def _hint(rule: MetricRule) -> str:
    """Return how a reference is written whose name runs into the text after it."""
    for name in references(rule.as_):
        digits = name[: len(name) - len(name.lstrip("0123456789"))]
        if digits and digits != name and rule.has_group(digits):
            return f": ${name} is one name; write ${{{digits}}}{name[len(digits) :]}"
    return ""


def _drops_all_labels(rule: MetricRule) -> bool:
    """Return whether a query aggregates all series to one value without labels."""
    words = words_of(rule.example())
    return bool(words & _AGGREGATIONS) and not words & _GROUPINGS


def _clashes(name: str, rules: Sequence[MetricRule], *, objects: bool) -> Iterator[RuleProblem]:
    """Yield the rules whose metric a later one has too, for the same objects."""
    for place, rule in enumerate(rules):
        later = [
            other.name for other in rules[place + 1 :] if not objects or _same_objects(rule, other)
        ]
        if later:
            text = f"{later[-1]} has the name {name} too, and counts while it finds series"
            yield _problem(rule, "name", text)


def _same_objects(first: MetricRule, second: MetricRule) -> bool:
    """Return whether both rules are about a resource, other than the namespaces of its objects."""
    if first.text.template or second.text.template:
        return True
    first_kinds, second_kinds = (
        {_KINDS.find(wanted) or wanted for _, wanted in rule.text.overrides}
        for rule in (first, second)
    )
    both = first_kinds & second_kinds
    return bool(both - {_KINDS.find(NAMESPACES)}) or bool(both and first_kinds == second_kinds)
