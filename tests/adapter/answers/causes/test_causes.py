"""Causes: every situation has the one that it shows, and healthy ones have none."""

from __future__ import annotations

import shlex
from collections import Counter
from copy import deepcopy

import pytest

from adapter.answers.causes import CauseCode, group_causes
from tests.adapter.answers.causes.othersituations import evening
from tests.adapter.answers.causes.situations import FOUND, NONE, XID, sliced


@pytest.mark.parametrize("name", FOUND)
def test_a_situation_has_its_cause(name: str) -> None:
    code, scene, words = FOUND[name]
    (cause,) = scene.causes()
    assert cause.code is code
    text = f"{cause.text}; {cause.fix}; {cause.command}"
    assert [part for part in words if part not in text] == [], text


@pytest.mark.parametrize("name", NONE)
def test_a_healthy_situation_has_no_cause(name: str) -> None:
    assert NONE[name].causes() == []


@pytest.mark.parametrize("name", FOUND)
def test_a_cause_is_one_plain_line_with_a_fix(name: str) -> None:
    _, scene, _ = FOUND[name]
    for cause in scene.causes():
        assert cause.subject
        assert cause.fix
        for text in (cause.text, cause.fix, cause.command):
            assert "\n" not in text
            assert not text.endswith(".")
        assert shlex.split(cause.command)[0] in ("kubectl", "helm", "gpu-metrics-adapter", "echo")


def test_every_code_has_three_situations() -> None:
    situations = Counter(code for code, _, _ in FOUND.values())
    few = {code for code in CauseCode if situations[code] < 3}
    # tests/adapter/answers/keda has the situations of ScaledObjects, test_drains those of nodes.
    others = {CauseCode.SCHEDULING_GATE, CauseCode.WRONG_NAMESPACE, CauseCode.NODE_KEPT}
    assert {code for code in few if not code.of_keda} <= others


def test_one_cause_of_many_hpas_is_one_group() -> None:
    _, scene, _ = FOUND["no-gpu-of-eight"]
    (cause,) = scene.causes()
    other = cause._replace(pods=("embed-a",), text="another text of the same node")
    ((first, concerned),) = group_causes([("hpa chat/llm", cause), ("hpa chat/embed", other)])
    assert concerned == ["hpa chat/llm", "hpa chat/embed"]
    assert first.pods == ("llm-a", "embed-a")
    assert first.key == "gpus-unavailable node n1"


CHANGES = [
    name
    for name, (_, scene, _) in FOUND.items()
    if any(
        f" {verb} " in cause.command and f" {scene.kind.lower()} llm" in cause.command
        for cause in scene.causes()
        for verb in ("patch", "edit")
    )
]


@pytest.mark.parametrize("name", CHANGES)
def test_a_target_in_git_is_changed_there(name: str) -> None:
    scene = deepcopy(FOUND[name][1])
    labels = {"kustomize.toolkit.fluxcd.io/name": "apps"}
    (target,) = [row for _, row in scene.workloads if row["metadata"]["name"] == "llm"]
    target["metadata"]["labels"] = labels
    (cause,) = scene.causes()
    assert cause.command == ""
    assert "change it in git (Flux Kustomization apps): " in cause.fix
    assert f" in {scene.kind} llm" in cause.fix


def test_most_situations_of_a_template_are_changes() -> None:
    assert len(CHANGES) > 10


def test_a_job_that_scales_to_0_is_named() -> None:
    """Of one HPA only: `doctor` reads no CronJobs, because an empty night is mostly wanted."""
    (cause,) = evening("deployment/llm").causes()
    assert cause.code is CauseCode.REPLICAS_RESET
    assert "CronJob chat/good-night scales it (0 20 * * *)" in cause.text
    assert cause.command == "kubectl -n chat get cronjobs"


@pytest.mark.parametrize(("pool", "found"), [("a", True), ("b", False)])
def test_tainted_devices_count_on_nodes_that_the_pods_may_use(pool: str, *, found: bool) -> None:
    scene = sliced(XID, nodeSelector={"pool": "a"})
    scene.node("n1", labels={"pool": pool}).node("n2", labels={"pool": "a"})
    codes = {cause.code for cause in scene.causes()}
    assert (CauseCode.DEVICE_TAINT in codes) is found
