"""doctor says of an HPA's pods what explain says, and one cause of many HPAs once."""

from __future__ import annotations

import copy

import pytest

from adapter.answers.causes import CauseCode
from adapter.tools.doctor.checks.hpapods import findings
from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.results import Outcome
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.scalers import read_hpa
from tests.adapter.answers.causes.situations import FOUND, NONE
from tests.adapter.tools.doctor.faults.hpapods import CHECKS, UNSEEN, facts_of

NEW = sorted({identity for identity in CHECKS.values() if identity >= "GMA431"})
ALIKE = [name for name, (code, _, _) in FOUND.items() if CHECKS[code] in NEW and name not in UNSEEN]


@pytest.mark.parametrize("name", ALIKE)
def test_a_finding_has_the_words_of_the_cause(name: str) -> None:
    code, scene, _ = FOUND[name]
    (cause,) = scene.causes()
    (result,) = run(facts_of(scene), (CHECKS[code],))
    (finding,) = result.findings
    assert (finding.message, finding.fix, finding.command) == cause[2:5]


@pytest.mark.parametrize("name", NONE)
def test_a_healthy_situation_has_no_finding(name: str) -> None:
    assert [result.findings for result in run(facts_of(NONE[name]), NEW) if result.findings] == []


def test_a_node_without_gpus_is_one_finding_for_many_hpas() -> None:
    _, scene, _ = FOUND["no-gpu-of-eight"]
    facts = facts_of(scene)
    rows = []
    for name in ("llm", "embed", "rank"):
        manifest = copy.deepcopy(scene.hpa)
        manifest["metadata"]["name"] = name
        rows.append(read_hpa(manifest))
    facts.hpas = Fact(rows)
    (finding,) = findings(facts, CauseCode.GPUS_UNAVAILABLE)
    assert finding.named == "hpa chat/llm and 2 hpas more"
    assert finding.objects == ("hpa chat/llm", "hpa chat/embed", "hpa chat/rank")
    (result,) = run(facts, ("GMA012",))
    assert [node_finding.subject for node_finding in result.findings] == ["node n1"]
    assert "pods of hpa chat/llm, hpa chat/embed, hpa chat/rank wait for it" in str(result.findings)


def test_hpas_of_other_workloads_are_left_to_others() -> None:
    _, scene, _ = FOUND["a-crash-loop"]
    scene = copy.deepcopy(scene)
    scene.metrics("Resource", "cpu")
    for _, row in scene.workloads:
        row["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    assert run(facts_of(scene), ("GMA433",))[0].outcome is Outcome.FINE
