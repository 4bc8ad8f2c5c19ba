"""How the PromQL of a trigger combines one series, and whether it has a value without it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from adapter.answers.keda.triggerquery import (
    QueryForm,
    form_of_query,
    has_value_without,
    without_constant,
)

S = 'DCGM_FI_DEV_GPU_UTIL{namespace="a",pod=~"llm-{1,2}.*"}'

MEANS = [
    f"avg({S})",
    f"avg({S}) # the mean ) of pods",
    f"avg by (deployment) ({S})",
    f"avg({S}) by (deployment)",
    f"(avg({S}))",
    f"avg({S}) or vector(0)",
    f"avg({S}) or on() vector(0)",
    f"avg({S}) or absent({S}) * 0",
    f"avg({S}) > 5",
    f"avg({S}) and on() up",
    f"round(avg({S}))",
    f"clamp_max(avg({S}), 100)",
    f"avg(avg_over_time({S}[5m]))",
    f"avg(avg_over_time({S}[5m] offset 1m))",
    f"avg_over_time(avg({S})[2m:])",
    f"max_over_time(avg({S})[2m:30s])",
    f"avg(sum by (pod) ({S}))",
    f"sum(avg({S}))",
    f"sum({S}) / count({S})",
    f"sum({S}) / (count({S}) or vector(1))",
    f"sum({S}) / clamp_min(count({S}), 1)",
    f"sum by (job) ({S}) / count by (job) ({S})",
    f'label_replace(avg({S}), "a", "b", "c", "d")',
    f"avg({S}) or avg({S})",
]


@pytest.mark.parametrize("query", MEANS)
def test_a_mean_has_many_forms(query: str) -> None:
    form = form_of_query(query)
    assert form is not None
    assert (form.series, form.form) == ("DCGM_FI_DEV_GPU_UTIL", "mean")
    assert form.factor == 1


@pytest.mark.parametrize(
    ("query", "form"),
    [
        (f"sum({S})", "sum"),
        (f"sum({S}) without (gpu)", "sum"),
        (f"sum({S}) or vector(0)", "sum"),
        (f"sum(max by (pod, gpu) ({S}))", "sum"),
        (f"sum(avg without (gpu) ({S}))", "sum"),
        (f"max(sum by (pod) ({S}))", "max"),
        (f"min({S})", "min"),
        (f"quantile(0.95, {S})", "p95"),
        (f"quantile(0.999, {S})", "p99.9"),
        (f"topk(1, {S})", "max"),
        (f"bottomk(1, {S})", "min"),
        (S, ""),
        (f"max_over_time({S}[1m])", ""),
    ],
)
def test_other_forms(query: str, form: str) -> None:
    read = form_of_query(query)
    assert read is not None
    assert (read.series, read.form) == ("DCGM_FI_DEV_GPU_UTIL", form)


@pytest.mark.parametrize(
    ("query", "factor"),
    [
        (f"avg({S}) / 100", "0.01"),
        (f"avg({S}) * 100", "100"),
        (f"100 * avg({S})", "100"),
        (f"avg({S} * 100)", "100"),
        (f"avg({S}) * (100 / 8)", "12.5"),
        (f"sum({S}) / 4 / count({S})", "0.25"),
        (f"sum({S}) / (count({S}) * 4)", "0.25"),
        (f"round(avg({S}) * 1e2) or vector(0)", "100"),
    ],
)
def test_a_number_changes_the_unit_only(query: str, factor: str) -> None:
    form = QueryForm("DCGM_FI_DEV_GPU_UTIL", "mean", Decimal(factor))
    assert form_of_query(query) == form


@pytest.mark.parametrize(
    "query",
    [
        *(f"count({S})", f"sum({S}) / sum(up)", f"sum({S}) / count(up)"),
        *(f"avg({S}) + 1", f"1 - avg({S})", f"-avg({S})"),
        *(f"avg({S}) > bool 5", f"sum(rate({S}[1m]))", f"avg({S}) ^ 2", f"stddev({S})"),
        *(f"sum(avg by (namespace) ({S}))", f"avg({S}) * avg({S})", f"100 / avg({S})"),
        *(f"avg({S}) or sum({S})", '{__name__="up"}', "vector(1)", "", f"avg({S}", f"avg({S}))"),
        *(f"avg({S}) * 0", f"avg({S}) / 0", "avg(", "sum by pod (up)", "up up", "{{ query }}"),
        *("-" * 500 + "up", "+".join(["up"] * 500), "(" * 500 + "up" + ")" * 500),
    ],
)
def test_other_queries_are_not_judged(query: str) -> None:
    assert form_of_query(query) is None


@pytest.mark.parametrize(
    ("query", "always"),
    [
        (f"sum({S})", False),
        (f"sum({S}) or vector(0)", True),
        (f"sum({S} or vector(0)) / 2", True),
        (f"(sum({S}) OR on() vector(0)) * 100", True),
        (f"sum({S}) or absent({S}) - 1", True),
        (f"sum({S}) or sum(up)", False),
        (f"sum({S}) * on() group_left() vector(2)", False),
        (f"vector(1) unless sum({S})", True),
        (f"vector(scalar(sum({S})))", False),
        (f"sum({S}) # or vector(0)", False),
        ('sum(up{job="a or vector(0)"})', False),
    ],
)
def test_a_query_that_is_never_empty(query: str, *, always: bool) -> None:
    assert has_value_without(query) is always


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        (f"sum({S}) or vector(0)", (f"sum({S})", "or vector(0)")),
        (f"sum({S})\n or on()\n vector(0)\n", (f"sum({S})", "or on() vector(0)")),
        (f"sum({S}) or sum(up) or vector(0)", (f"sum({S}) or sum(up)", "or vector(0)")),
        (f"sum({S})", None),
        (f"sum({S}) or sum(up)", None),
        (f"sum({S}) or vector(0) or vector(1)", None),
        (f"(sum({S}) or vector(0)) * 2", None),
    ],
)
def test_the_constant_at_the_end_can_be_removed(query: str, parts: tuple[str, str] | None) -> None:
    """What is left is empty without its series, or nothing is removed."""
    assert without_constant(query) == parts
    if parts is not None:
        assert has_value_without(parts[0]) is False
