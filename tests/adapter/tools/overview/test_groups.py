"""Rows with one cause are one group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.overview.groups import CauseRow, by_cause


def test_rows_with_one_key_are_one_line_with_the_first_names() -> None:
    rows = [CauseRow(f"chat/svc-{n}", "exporter down on n3", "exporter_down n3") for n in range(30)]
    rows.append(CauseRow("lab/other", "quota of lab forbids pods", "quota lab"))
    large, small = by_cause(rows)
    assert (large.count, large.key, large.shown) == (30, "exporter_down n3", True)
    assert large.describe_names() == "chat/svc-0, chat/svc-1, chat/svc-2 and 27 more"
    assert (small.count, small.text, small.shown) == (1, "quota of lab forbids pods", False)
    assert large.text == "exporter down on n3"


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (
            "at 3: no metric: 1 of 3 pods has no value: llm-7f9-x2k (too_old)",
            "at 8: no metric: 2 of 8 pods have no value: embed-0 (too_old), embed-b (too_old)",
            "at …: no metric: pods have no value: … (too_old)",
        ),
        (
            "at maximum 8: gpu_utilization 90.5% of 60%",
            "at maximum 4: gpu_utilization 71% of 70%",
            "at maximum …: gpu_utilization",
        ),
        (
            "deployments.apps chat/llm not found",
            "deployments.apps chat/embed not found",
            "deployments.apps … not found",
        ),
    ],
)
def test_names_and_amounts_of_a_row_do_not_tell_causes_apart(
    one: str, other: str, text: str
) -> None:
    (group,) = by_cause([CauseRow("chat/llm", one), CauseRow("chat/embed", other)])
    assert group.text == text
    assert group.rows == (0, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exporter down on n3", "exporter down on n4"),
        ("http://10.0.0.7:9400 does not answer", "http://10.0.0.8:9400 does not answer"),
        ("1 of 3 pods has no value: a (exporter_down)", "1 of 3 pods has no value: a (too_old)"),
        ("unable to get metric gpu_utilization", "unable to get metric gpu_memory_used_bytes"),
    ],
)
def test_another_node_reason_or_metric_is_another_cause(one: str, other: str) -> None:
    assert len(by_cause([CauseRow("chat/a", one), CauseRow("chat/b", other)])) == 2


def test_a_row_alone_keeps_its_text() -> None:
    (group,) = by_cause([CauseRow("chat/llm", "stuck at 3: llm has no value")])
    assert group.text == "stuck at 3: llm has no value"


def test_names_of_the_workload_are_its_own_too() -> None:
    rows = [
        CauseRow("chat/a", "Deployment/x7 cannot be read", own=("Deployment/x7",)),
        CauseRow("chat/b", "Deployment/y9 cannot be read", own=("Deployment/y9",)),
    ]
    assert [group.text for group in by_cause(rows)] == ["… cannot be read"]


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="ab/-…1", max_size=6),
            st.text(alphabet="ab (),…1", max_size=24),
            st.sampled_from(["", "", "k1", "k2"]),
        ),
        max_size=12,
    )
)
def test_each_row_is_in_one_group_and_the_sizes_add_up(rows: list[tuple[str, str, str]]) -> None:
    made = [CauseRow(*row) for row in rows]
    groups = by_cause(made)
    assert sorted(place for group in groups for place in group.rows) == list(range(len(made)))
    assert [group.count for group in groups] == sorted(
        (group.count for group in groups), reverse=True
    )
    assert all(made[place].key in ("", group.key) for group in groups for place in group.rows)
