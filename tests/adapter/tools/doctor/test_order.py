"""The order of findings: what keeps values or pods away stands before all that works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct

from adapter.config.process.output import Screen
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.model import Finding, FindingEffect
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.results import Outcome, Result, order_results
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.valuelesspods import read_without_value
from tests.adapter.tools.doctor.clean import apiservice, clean, external, hpa, metric
from tests.adapter.tools.doctor.faults.every import FAULTS
from tests.adapter.tools.doctor.faults.register import Fault

FAILED = {
    "type": "ScalingActive",
    "status": "False",
    "reason": "FailedGetPodsMetric",
    "message": "no metrics returned",
}
MAXIMUM = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}


def worlds() -> list[Any]:
    """Every fault that keeps values or pods away."""
    faults = []
    for identity, changes in FAULTS.items():
        for change in changes:
            facts = clean()
            change(facts)
            parts = order_results(run(facts, (identity,)))
            if parts[0].effect is FindingEffect.CAUSE and facts.hpas.known and not facts.offline:
                faults.append(pytest.param(change, id=f"{identity}-{change.__name__}"))
    return faults


def beside(facts: Facts, *rows: Any, **more: Any) -> None:
    """Another HPA, which has side matters only."""
    if facts.apiservices.known:
        external = apiservice("v1beta1.external.metrics.k8s.io")
        facts.apiservices = Fact([*facts.apiservices.read(), external])
    other = hpa(*rows, name="side", scaleTargetRef={"kind": "CronThing", "name": "x"}, **more)
    facts.hpas = Fact([*facts.hpas.read(), other])


def sum_by_value() -> dict[str, Any]:
    """A metric whose target type does not fit."""
    row = external("gpu_utilization")
    row["external"]["target"] = {"type": "Value", "value": "70"}
    return row


def first(facts: Facts) -> tuple[FindingEffect, str]:
    """The first finding of a report."""
    part = order_results(run(facts))[0]
    return part.effect, part.result.check.id


@pytest.mark.parametrize("change", worlds())
def test_a_cause_stands_before_side_matters_and_results(change: Fault) -> None:
    facts = clean()
    change(facts)
    beside(facts, sum_by_value(), status={"conditions": [FAILED]})
    results = run(facts)
    assert {"GMA412", "GMA410"} <= {row.check.id for row in results if row.findings}
    parts = order_results(results)
    assert parts[0].effect is FindingEffect.CAUSE
    assert parts[0].result.check.id != "GMA412"
    assert [part.effect for part in parts] == sorted(part.effect for part in parts)


@pytest.mark.parametrize("row", [sum_by_value(), metric(average="700m")])
def test_a_target_that_runs_away_is_a_cause_if_the_hpa_is_at_its_maximum(
    row: dict[str, Any],
) -> None:
    facts = clean()
    beside(facts, row)
    assert first(facts)[0] is FindingEffect.RUNAWAY
    beside(facts, row, status={"conditions": [MAXIMUM]})
    assert first(facts)[0] is FindingEffect.CAUSE


def test_what_follows_from_a_cause_leads_to_it() -> None:
    cause, other = Finding("hpa chat/llm", "crashes", "see", "kubectl x"), "hpa chat/other"
    shown = Finding("hpa chat/llm", "FailedGetPodsMetric", "explain", "gpu-metrics-adapter explain")
    results = run(clean(), ("GMA410", "GMA433", "GMA412"))
    by_id = {row.check.id: row for row in results}
    report = DoctorReport(
        [
            _with(by_id["GMA410"], shown, shown._replace(subject=other)),
            _with(by_id["GMA412"], Finding(other, "a sum", "set it")),
            _with(by_id["GMA433"], cause),
        ],
        "server s",
        quiet=True,
    )
    lines = report.lines(Screen())
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert [line.partition(" GMA")[2][:3] or line for line in heads] == [
        *("causes", "433", "what follows from them, or from others", "410", "also found", "412")
    ]
    text = "\n".join(lines)
    assert "FailedGetPodsMetric\n      fix: as above: fix GMA433 first\n" in text
    assert text.count("$ gpu-metrics-adapter explain") == 1
    assert [row["effect"] for row in report.json()["checks"][0]["findings"]] == ["result"] * 2


def test_a_consequence_with_the_fix_of_a_cause_of_another_object_leads_to_it() -> None:
    command = "kubectl set env ds/dcgm DCGM_EXPORTER_KUBERNETES=true"
    cause = Finding("daemonset gpu/dcgm", "names no pods", "set the variable", command)
    shown = Finding("pod chat/llm-1", "has no value", "run this command for its exporter", command)
    other = shown._replace(subject="pod chat/llm-2", action="kubectl describe pod llm-2")
    by_id = {row.check.id: row for row in run(clean(), ("GMA433", "GMA706"))}
    parts = order_results([_with(by_id["GMA433"], cause), _with(by_id["GMA706"], shown, other)])
    led, kept = parts[1].result.findings
    assert (led.fix, led.command) == ("as above: fix GMA433 first", "")
    assert kept == other


def _with(result: Result, *findings: Finding) -> Result:
    return replace(result, findings=findings, outcome=Outcome.FOUND)


def test_without_a_cause_what_is_seen_comes_first() -> None:
    facts = clean()
    facts.hpas = Fact([hpa(status={"conditions": [FAILED]})])
    beside(facts, sum_by_value())
    assert first(facts) == (FindingEffect.RESULT, "GMA410")


def _nothing(facts: Facts) -> None:
    """The pods have values."""


def _lacks(facts: Facts) -> None:
    pod = next(row for row in facts.pods.read() if row.pod.ref.namespace == "chat")
    meta = {"name": pod.pod.ref.name, "namespace": "chat"}
    reason = {"reason": "exporter_down", "message": "it is down", "hint": "kubectl logs x"}
    facts.without_value = Fact([read_without_value({"metadata": meta, "reason": reason})])


def _unready(facts: Facts) -> None:
    rows = facts.pods.read()
    facts.pods = Fact([replace_struct(row, pod=row.pod.replace(ready=False)) for row in rows])


def _unmeasured(facts: Facts) -> None:
    facts.measured = Fact({})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_nothing, "its ready pods have GPU values"),
        (_lacks, "its pods have no value (exporter_down): "),
        (_unready, "only ready pods have values"),
        (_unmeasured, "see why its pods have no value"),
    ],
)
def test_an_hpa_without_a_metric_is_led_to_what_its_pods_lack(
    change: Callable[[Facts], None], words: str
) -> None:
    facts = clean()
    facts.hpas = Fact([hpa(status={"conditions": [FAILED]})])
    change(facts)
    (result,) = run(facts, ("GMA410",))
    assert words in result.findings[0].fix
