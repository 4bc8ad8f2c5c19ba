"""The verdict says what is wrong, and nothing about what could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adapter.answers.judgement.counts import HpaCounts
from adapter.answers.judgement.states import ScalingState
from adapter.tools.overview.gpuclasses import GpuCounts
from adapter.tools.overview.hpas import HpaSummary
from adapter.tools.overview.verdict import (
    IdlePrice,
    PodCounts,
    count_hpas,
    count_pods,
    verdict,
)
from tests.adapter.tools.overview.hpas import at_maximum, hpa, state_of, stuck

GOOD = [state_of(hpa())]
MIXED = [state_of(row) for row in (stuck(), at_maximum(), hpa(), hpa(desired=5))]
PODS, GPUS = PodCounts(4, 4, 0, 0), GpuCounts(busy=8)

SENTENCES: dict[
    str, tuple[Sequence[HpaSummary] | None, PodCounts | None, GpuCounts | None, str]
] = {
    "good: The HPA works, all 4 GPU pods have a value.": (GOOD, PODS, GPUS, ""),
    "good: The GPU pod has a value, 1 GPU is idle.": (
        [],
        PodCounts(1, 1, 0, 0),
        GpuCounts(busy=7, idle=1),
        "",
    ),
    "bad: 1 of 4 HPAs is stuck, 1 HPA is overloaded.": (MIXED, PODS, GPUS, ""),
    "warning: 1 pod has no value, 2 pods wait for a node.": ([], PodCounts(4, 1, 1, 2), None, ""),
    "warning: 3 GPUs are not measured, 5 GPUs are idle.": (
        None,
        None,
        GpuCounts(idle=5, unmeasured=3),
        "",
    ),
    "empty: There is no GPU and no GPU pod and no HPA.": (
        [],
        PodCounts(0, 0, 0, 0),
        GpuCounts(),
        "",
    ),
    "empty: There is no GPU.": (None, None, GpuCounts(), ""),
    "waiting: Nothing has been read yet.": (None, None, None, ""),
    "good: 8 GPUs measured.": (None, None, GPUS, ""),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_sentence_names_what_is_wrong_first(sentence: str) -> None:
    hpas, pods, gpus, _ = SENTENCES[sentence]
    cluster_verdict = verdict(hpas, pods, gpus)
    assert f"{cluster_verdict.level}: {cluster_verdict.text}" == sentence


def test_gpus_where_no_pod_can_start_and_those_without_an_exporter_are_warnings() -> None:
    cluster_verdict = verdict(None, None, GpuCounts(busy=1, blocked=2), silent=8)
    assert (cluster_verdict.level, cluster_verdict.text) == (
        "warning",
        "2 free GPUs where no pod can start, 8 GPUs are reported by no exporter.",
    )
    assert verdict([], PodCounts(0, 0, 0, 0), GpuCounts(), silent=8).level == "warning"
    # They count as not measured: the page's tile and the sentence have the same total.
    assert cluster_verdict.gpus == GpuCounts(busy=1, blocked=2, unmeasured=8)
    assert cluster_verdict.json()["gpus"]["total"] == 11


def test_the_part_of_the_page_has_null_for_what_could_not_be_read() -> None:
    body = verdict(MIXED, None, GPUS, IdlePrice(4.0, None, 2)).json()
    assert body["hpas"] == {
        "noun": "HPA",
        "total": 4,
        "stuck": 1,
        "stale": 0,
        "behind": 0,
        "overloaded": 1,
        "impaired": 0,
        "incomplete": 0,
        "waiting": 0,
        "scaling": 1,
        "held": 0,
        "healthy": 1,
        "atZero": 0,
        "paused": 0,
    }
    assert body["pods"] is None
    assert body["gpus"] == {
        "total": 8,
        "free": 0,
        "blocked": 0,
        "unheld": 0,
        "busy": 8,
        "idle": 0,
        "unmeasured": 0,
    }
    assert body["idle"] == {"pricePerHour": 4.0, "costSoFar": None, "withoutPrice": 2}
    assert verdict(None, PODS, None).json()["idle"] is None


def test_hpas_without_a_sync_are_not_healthy() -> None:
    counts = count_hpas([state_of(hpa(conditions=()))])
    assert [(row.key, amount) for row, amount in counts.rows()] == [("waiting", 1)]


def test_every_hpa_is_in_one_class_and_the_classes_add_up() -> None:
    counts = HpaCounts([state for state in ScalingState for _ in range(2)]).json()
    assert counts.pop("noun") == "HPA"
    assert counts.pop("total") == sum(counts.values()) == 2 * len(ScalingState)
    assert set(counts.values()) == {2, 4}  # both directions of scaling are one class


def test_pods_without_a_node_wait_and_are_not_counted_as_unmeasured() -> None:
    rows: list[dict[str, Any]] = [
        {"Why-Not": None, "Node": "n1"},
        {"Why-Not": "no_exporter_on_node", "Node": "n1"},
        {"Why-Not": "not_scheduled", "Node": None},
    ]
    assert count_pods(rows) == PodCounts(3, 1, 1, 1)
