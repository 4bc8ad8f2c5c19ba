"""Whether the query of a rule can be asked once for all objects, and how it reads then.

Two conditions make the widened query equal to the narrow one for each object. The template may
write the label matchers as they are, and may not depend on them otherwise. The query that it
writes must keep the values of different objects apart: see :mod:`adapter.answers.rules.promql`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from adapter.answers.rules import matchers
from adapter.answers.rules.gotemplate.nodes import (
    Branch,
    Call,
    Chain,
    Dot,
    Node,
    Operand,
    Output,
    Pipe,
    Variable,
)
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.promql import SENTINEL, ObjectKey, Widened, widen_query
from adapter.answers.rules.promqltokens import NotWidenedError
from adapter.answers.rules.rule import MetricRule
from apiservice.errors import BadQuery
from apiservice.labels.selector import Selector

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OF_REQUEST: Final = frozenset({"LabelMatchers", "LabelValuesByName"})
_MATCHERS_ONLY: Final = (Dot(("LabelMatchers",)), Variable("$", ("LabelMatchers",)))


def widen(rule: MetricRule, series: str, key: ObjectKey) -> Widened:
    """Return the query of a rule for all objects.

    Raises:
        NotWidenedError: it might differ from the queries for single objects.
    """
    labels = key.labels
    if len(set(labels)) < len(labels) or not all(map(_LABEL.fullmatch, labels)):
        raise NotWidenedError("the labels of the objects are not two names of Prometheus labels")
    with raise_unexpected_as(NotWidenedError):
        _check(rule.template_nodes, whole=True)
        try:
            text = rule.render_query(series, SENTINEL, key.label)
        except BadQuery as error:
            raise NotWidenedError(str(error)) from None
        return widen_query(text, key)


def wide_query(widened: Widened, key: ObjectKey, selector: Selector) -> str:
    """Return the query for all objects, limited by a metric selector.

    Raises:
        BadQuery: PromQL cannot express the selector.
    """
    expressions = [matchers.of_requirement(requirement)[0] for requirement in selector.requirements]
    expressions += [matchers.matcher(label, "!=", "") for label in reversed(key.labels)]
    return widened.query(",".join(expressions))


def why_narrow(rule: MetricRule) -> str:
    """Return why a custom rule is asked for each request; empty if it is asked for all objects.

    The labels ``pod`` and ``namespace`` stand for those of the objects.
    """
    try:
        widen(rule, "series", ObjectKey("pod", "namespace"))
    except NotWidenedError as error:
        return str(error)
    return ""


def _check(nodes: Sequence[Node], *, whole: bool) -> None:
    """Refuse a template whose text depends on the objects in any other way than by matchers.

    Args:
        nodes: of the template.
        whole: whether the dot may be the whole argument.
    """
    for node in nodes:
        if isinstance(node, Output):
            pipe = node.pipeline
            if pipe.variables or len(pipe.commands) > 1 or pipe.commands[0] not in _MATCHERS_ONLY:
                _check_pipe(pipe, whole=whole)
        elif isinstance(node, Branch):
            _check_pipe(node.pipeline, whole=whole)
            _check(node.body, whole=whole and node.keyword == "if")
            _check(node.otherwise, whole=whole)


def _check_pipe(pipe: Pipe, *, whole: bool) -> None:
    for command in pipe.commands:
        _check_operand(command, whole=whole)


def _check_operand(operand: Operand | Call, *, whole: bool) -> None:
    match operand:
        case Call():
            for argument in operand.arguments:
                _check_operand(argument, whole=whole)
        case Chain():
            _check_pipe(operand.pipeline, whole=whole)
            _check_fields(operand.fields)
        case Dot():
            if whole and not operand.fields:
                raise NotWidenedError("the template uses the whole argument")
            _check_fields(operand.fields)
        case Variable():
            if operand.name == "$" and not operand.fields:
                raise NotWidenedError("the template uses the whole argument")
            _check_fields(operand.fields)


def _check_fields(fields: Sequence[str]) -> None:
    used = _OF_REQUEST.intersection(fields)
    if used:
        raise NotWidenedError(f"the template computes with .{min(used)}")
