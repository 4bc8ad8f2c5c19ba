"""The assignment in a sample, and whether it is accepted."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import (
    Assignment,
    Mismatch,
    assignment,
    mismatch,
    unfit_reason,
)
from adapter.pipeline.devices.options import TelemetryOptions
from tests.adapter.world import make_pod

EXPORTER = {"pod": "dcgm-exporter-x", "namespace": "monitoring", "container": "exporter"}
WORK = {"pod": "llm-0", "namespace": "ml", "container": "server"}
EXPORTED = {f"exported_{key}": value for key, value in WORK.items()}
LEGACY = {"pod_name": "llm-0", "pod_namespace": "ml", "container_name": "server"}
SCRAPED = {"instance": "10.0.0.7:9400", "job": "dcgm-exporter", "service": "dcgm-exporter"}
LLM = Assignment(PodRef("ml", "llm-0"), "server", "", suspect=False)

CASES: dict[str, tuple[dict[str, str], Assignment | None]] = {
    "the exporter's page": (WORK, LLM),
    "honorLabels false": (EXPORTER | EXPORTED | SCRAPED, LLM),
    "honorLabels true": (WORK | SCRAPED, LLM),
    "old namespace": (LEGACY, LLM),
    "old namespace after a scrape": (EXPORTER | LEGACY | SCRAPED, LLM),
    "only the pod was renamed": (
        {"pod": "e", "exported_pod": "llm-0", "namespace": "ml", "container": "server"},
        LLM,
    ),
    "unassigned, empty labels": ({"pod": "", "namespace": "", "container": ""}, None),
    "unassigned, no labels": ({}, None),
    "unassigned, old namespace, empty": (
        EXPORTER | {"pod_name": "", "pod_namespace": "", "container_name": ""},
        None,
    ),
    "unassigned, after a scrape": (
        EXPORTER | SCRAPED,
        Assignment(PodRef("monitoring", "dcgm-exporter-x"), "exporter", "", suspect=True),
    ),
    "a pod without its namespace": ({"pod": "llm-0"}, None),
    "with a uid": (WORK | {"pod_uid": "u"}, LLM._replace(uid="u")),
    "with an empty uid": (WORK | {"pod_uid": ""}, LLM),
    "Intel": ({"kube_pod": "llm-0", "kube_namespace": "ml", "kube_container": "server"}, LLM),
    "Intel after a scrape": (
        EXPORTER
        | SCRAPED
        | {"kube_pod": "llm-0", "kube_namespace": "ml", "kube_container": "server"},
        LLM,
    ),
    "Intel, unassigned": (EXPORTER | {"kube_pod": "", "kube_namespace": ""}, None),
    "GKE's own metrics": (
        {"pod_name": "llm-0", "namespace_name": "ml", "container_name": "server", "location": "l"},
        LLM,
    ),
    "HAMi, older names": (
        {"podname": "llm-0", "podnamespace": "ml", "ctrname": "server", "zone": "vGPU"},
        LLM,
    ),
    "HAMi after a scrape": (EXPORTER | EXPORTED | SCRAPED | {"device_uuid": "GPU-1"}, LLM),
    "AMD, empty labels": ({"pod": "", "namespace": "", "container": "", "job_id": ""}, None),
    "AMD, in use": (WORK | {"job_id": "", "hostname": "n1"}, LLM),
    "honorLabels true, the exporter's own": (
        EXPORTER | SCRAPED | {"endpoint": "metrics"},
        Assignment(PodRef("monitoring", "dcgm-exporter-x"), "exporter", "", suspect=True),
    ),
    "honorLabels false, empty exported labels": (
        EXPORTER | SCRAPED | {"exported_pod": "", "exported_namespace": ""},
        Assignment(PodRef("monitoring", "dcgm-exporter-x"), "exporter", "", suspect=True),
    ),
}


@pytest.mark.parametrize(("labels", "expected"), CASES.values(), ids=CASES)
def test_the_workload_is_found_under_every_spelling(
    labels: dict[str, str], expected: Assignment | None
) -> None:
    assert assignment(labels, None) == expected


def test_an_assignment_to_the_known_exporter_pod_is_doubted() -> None:
    assigned = assignment(EXPORTER, ("monitoring", "dcgm-exporter-x"))
    assert assigned is not None
    assert assigned.suspect


@pytest.mark.parametrize(
    ("claimed", "pod", "node", "reason"),
    [
        (LLM, make_pod("llm-0", node="n"), "n", None),
        (LLM, make_pod("llm-0", node="n"), None, None),
        (LLM, make_pod("llm-0"), "n", None),
        (LLM, None, "n", Mismatch.UNKNOWN_POD),
        (LLM._replace(suspect=True), None, "n", Mismatch.SELF_ATTRIBUTION),
        (LLM, make_pod("llm-0", gpus={}), "n", Mismatch.NO_GPU),
        (LLM._replace(suspect=True), make_pod("llm-0", gpus={}), "n", Mismatch.SELF_ATTRIBUTION),
        (LLM._replace(suspect=True), make_pod("llm-0"), "n", None),
        (LLM, make_pod("llm-0", gpus={}, claims=True), "n", None),
        (LLM, make_pod("llm-0", node="m"), "n", Mismatch.WRONG_NODE),
        (LLM, make_pod("llm-0", phase="Succeeded"), "n", Mismatch.FINISHED),
        (LLM, make_pod("llm-0", phase="Failed"), "n", Mismatch.FINISHED),
        (LLM._replace(uid="other"), make_pod("llm-0"), "n", Mismatch.POD_UID),
        (LLM._replace(uid="uid"), make_pod("llm-0"), "n", None),
        (LLM._replace(serves=True), make_pod("llm-0", gpus={}), "n", None),
        (LLM._replace(serves=True), make_pod("llm-0", gpus={}, node="m"), "n", None),
        (LLM._replace(serves=True), None, "n", Mismatch.UNKNOWN_POD),
        (LLM._replace(serves=True), make_pod("llm-0", phase="Failed"), "n", Mismatch.FINISHED),
        (LLM._replace(serves=True, uid="x"), make_pod("llm-0"), "n", Mismatch.POD_UID),
    ],
)
def test_an_assignment_counts_only_for_a_pod_that_can_hold_the_device(
    claimed: Assignment, pod: Pod | None, node: str | None, reason: Mismatch | None
) -> None:
    assert mismatch(claimed, pod, node) is reason


@pytest.mark.parametrize(
    ("phase", "ready", "unready", "reason"),
    [
        ("Running", True, False, None),
        ("Running", False, False, Mismatch.NOT_READY),
        ("Running", False, True, None),
        ("Pending", False, True, Mismatch.NOT_RUNNING),
        ("Succeeded", False, True, Mismatch.FINISHED),
    ],
)
def test_only_running_ready_pods_have_values(
    phase: str, *, ready: bool, unready: bool, reason: Mismatch | None
) -> None:
    options = TelemetryOptions(unready=unready)
    assert unfit_reason(make_pod("p", phase=phase, ready=ready), options) is reason
