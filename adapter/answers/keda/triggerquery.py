"""What the PromQL of a trigger asks for: how it combines one series, and when it has a value.

KEDA's scaler takes the only element of the answer. It counts an empty answer as 0, and ``NaN`` and
``Inf`` too, unless ``ignoreNullValues`` is false (``pkg/scalers/prometheus_scaler.go``).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

from adapter.answers.rules.promqltree import (
    PromqlAggregation,
    PromqlCall,
    PromqlNode,
    PromqlOperation,
    PromqlScalar,
    PromqlSelector,
    bounded,
    read_query,
)

_FORMS: Final = {"avg": "mean", "sum": "sum", "max": "max", "min": "min", "count": "count"}
_COUNT: Final = "count"
_KEEP: Final = frozenset(
    {f"{word}_over_time" for word in ("avg", "min", "max", "last", "quantile", "median")}
    | {"round", "ceil", "floor", "abs", "clamp", "clamp_min", "clamp_max", "sort", "sort_desc"}
    | {"label_replace", "label_join", "vector", "scalar"}
)
"""Functions whose result is in the unit of their vector, and combines the same."""
_ABSENT: Final = ("absent", "absent_over_time")
_COMPARISONS: Final = ("==", "!=", ">", "<", ">=", "<=")


class QueryForm(NamedTuple):
    """How a query combines one series."""

    series: str
    form: str
    """``mean``, ``sum``, ``max``, ``min``, ``p95``; empty without an aggregation."""
    factor: Decimal = Decimal(1)
    """The value is in the unit of the series times this."""
    groups: str = ""
    """What has a value of its own: ``pods``, or ``others``; empty for one value of all."""


def form_of_query(query: str) -> QueryForm | None:
    """Return how a query combines one series; None for other queries.

    ``avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm.*"}) / 100`` is the ``mean``, times 0.01.
    """
    tree = read_query(query)
    form = None if tree is None else _form_of(tree)
    return None if form is None or form.form == _COUNT else form


def has_value_without(
    query: str, is_missing: Callable[[PromqlSelector], bool] | None = None
) -> bool | None:
    """Return whether a query has a value although series are missing; None if it is not understood.

    Args:
        query: PromQL.
        is_missing: which selectors have no series; by default, all. The others are taken to have.
    """
    tree = read_query(query)
    return None if tree is None else _has_value(tree, is_missing or _is_any)


def without_constant(query: str) -> tuple[str, str] | None:
    """Return a query without the ``or vector(0)`` at its end, and this end; None without one that
    alone gives the value while no series exists."""
    tree = read_query(query)
    if not isinstance(tree, PromqlOperation) or tree.sign != "or":
        return None
    shorter, end = query[: tree.place].rstrip(), " ".join(query[tree.place :].split())
    is_whole = has_value_without(shorter) is False and _has_value(tree.right, _is_any)
    return (shorter, end) if is_whole else None


def _is_any(_: PromqlSelector) -> bool:
    return True


def _has_value(node: PromqlNode, is_missing: Callable[[PromqlSelector], bool]) -> bool:
    if isinstance(node, PromqlSelector):
        return not is_missing(node)
    if isinstance(node, PromqlOperation):
        left, right = (_has_value(side, is_missing) for side in (node.left, node.right))
        if node.sign == "or":
            return left or right
        return left and (right or node.sign == "unless")
    if isinstance(node, PromqlScalar) or node.name in _ABSENT:
        return True
    return all(_has_value(argument, is_missing) for argument in node.arguments)


def _form_of(node: PromqlNode) -> QueryForm | None:
    """Return how an expression combines one series; also ``count``, which is not a value of it."""
    if isinstance(node, PromqlSelector):
        return QueryForm(node.series, "") if node.series else None
    if isinstance(node, PromqlAggregation):
        return _form_of_aggregation(node)
    if isinstance(node, PromqlOperation):
        return _form_of_operation(node)
    if isinstance(node, PromqlCall) and node.name in _KEEP:
        vectors = [row for row in node.arguments if not isinstance(row, PromqlScalar)]
        return _form_of(vectors[0]) if len(vectors) == 1 else None
    return None


def _form_of_aggregation(node: PromqlAggregation) -> QueryForm | None:
    inner = _form_of(node.arguments[-1])
    form = _word_of(node)
    if inner is None or not form:
        return None
    if inner.form and inner.groups != "pods":
        if inner.groups and inner.form != form and "sum" in (inner.form, form):
            return None  # how many groups there are is not known
        form = inner.form
    return inner._replace(form=form, groups=_groups_of(node))


def _groups_of(node: PromqlAggregation) -> str:
    names_pods = any("pod" in label for label in node.labels)
    if node.word == "without":
        return "others" if names_pods else "pods"
    return "pods" if names_pods else "others" if node.labels else ""


def _word_of(node: PromqlAggregation) -> str:
    """Return the form of an aggregation; empty if its value is none of the series."""
    number = _number_of(node.arguments[0])
    if node.name == "quantile" and number is not None and 0 <= number <= 1:
        return f"p{(number * 100).normalize():f}"
    if node.name in ("topk", "bottomk") and number == 1:
        return "max" if node.name == "topk" else "min"
    return _FORMS.get(node.name, "")


def _form_of_operation(node: PromqlOperation) -> QueryForm | None:
    left, right = _form_of(node.left), _form_of(node.right)
    if node.sign in ("and", "unless"):
        return left
    if node.sign == "or":
        same = left is not None and right is not None and left[1:] == right[1:]
        return left if same or _is_constant(node.right) else None
    if node.sign in _COMPARISONS and not node.whether:
        return left if _number_of(node.right) is not None else None
    if node.sign == "/" and left is not None and right is not None:
        same = (left.series, left.groups) == (right.series, right.groups)
        is_mean = same and (left.form, right.form) == ("sum", _COUNT)
        factor = bounded(left.factor / right.factor)
        return left._replace(form="mean", factor=factor) if is_mean and factor else None
    return _multiply(node, left, right)


def _multiply(
    node: PromqlOperation, left: QueryForm | None, right: QueryForm | None
) -> QueryForm | None:
    """Return the form of a product with a number, or of a quotient by one."""
    number, form = _number_of(node.right), left
    if node.sign == "*" and number is None:
        number, form = _number_of(node.left), right
    if form is None or number is None or number <= 0 or node.sign not in ("*", "/"):
        return None
    factor = bounded(form.factor * number if node.sign == "*" else form.factor / number)
    return None if factor is None else form._replace(factor=factor)


def _is_constant(node: PromqlNode) -> bool:
    """Return whether an expression has a value of its own, regardless of the series."""
    return _form_of(node) is None and _has_value(node, _is_any)


def _number_of(node: PromqlNode) -> Decimal | None:
    """Return the number that an expression without series has; None for others."""
    if isinstance(node, PromqlScalar):
        return node.number
    if isinstance(node, PromqlOperation) and node.sign in ("+", "-", "*", "/"):
        left, right = _number_of(node.left), _number_of(node.right)
        if left is None or right is None:
            return None
        if node.sign in ("+", "-"):
            return bounded(left + right if node.sign == "+" else left - right)
        if node.sign == "*":
            return bounded(left * right)
        return bounded(left / right) if right else None
    return None
