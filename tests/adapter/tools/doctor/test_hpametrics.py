"""Who serves a metric is the HPA controller's to say, not a list of names."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.runner import run
from tests.adapter.tools.doctor.clean import apiservice, clean, external, hpa, metric, workload
from tests.adapter.tools.doctor.faults.hpas import let_rules_serve, refused

NAME = "orders_in_flight"
VALUE = {
    "type": "Pods",
    "pods": {"metric": {"name": NAME}, "current": {"averageValue": "3"}},
}
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": ""}
NO_VALUE = {
    "type": "ScalingActive",
    "status": "False",
    "reason": "FailedGetPodsMetric",
    "message": "unable to get metric orders_in_flight: no metrics returned",
}


def found(facts: Facts, *checks: str) -> list[Finding]:
    return [finding for result in run(facts, checks) for finding in result.findings]


def with_hpa(*rows: dict[str, Any], status: dict[str, Any], rules: bool = True) -> Facts:
    facts = clean()
    if rules:
        let_rules_serve(facts)
    facts.hpas = Fact([hpa(*rows, status=status)])
    return facts


@pytest.mark.parametrize("rules", [True, False])
def test_a_metric_with_a_value_is_served_by_somebody(rules: bool) -> None:
    """Before, each metric of a rule or of a delegate was called one that does not exist."""
    status = {"currentMetrics": [VALUE], "conditions": [ACTIVE]}
    facts = with_hpa(metric(NAME), status=status, rules=rules)
    assert found(facts, "GMA401", "GMA410") == []


def test_a_name_unlike_ours_is_not_judged_before_the_controller_has_asked() -> None:
    assert found(with_hpa(metric(NAME), status={}), "GMA401", "GMA410") == []
    (finding,) = found(with_hpa(metric(NAME), status={}, rules=False), "GMA401")
    assert "which the adapter does not serve" in finding.message


@pytest.mark.parametrize("row", [metric(NAME), external(NAME)], ids=["pods", "external"])
def test_a_metric_that_the_api_does_not_have_is_one_finding(row: dict[str, Any]) -> None:
    facts = with_hpa(row, status=refused(NAME))
    external_api = apiservice("v1beta1.external.metrics.k8s.io")
    facts.apiservices = Fact([*facts.apiservices.read(), external_api])
    (finding,) = found(facts, "GMA401")
    assert finding.message == (
        "asks for 'orders_in_flight', which no metrics API serves; docs/metrics.md lists the "
        "metrics"
    )
    assert finding.fix.endswith("or let a rule or another server serve it (docs/rules.md)")


def test_the_controllers_word_is_about_the_whole_name() -> None:
    facts = with_hpa(metric(NAME), status=refused(f"{NAME}_total"))
    assert found(facts, "GMA401") == []


def test_a_metric_of_others_without_a_value_is_a_finding_too() -> None:
    """A stuck HPA was silent in doctor unless it asked for a metric of the adapter."""
    facts = with_hpa(metric(NAME), status={"conditions": [NO_VALUE]})
    (finding,) = found(facts, "GMA401", "GMA410")
    assert finding.message == f"{NO_VALUE['reason']}: {NO_VALUE['message']}"


def test_hpas_of_other_workloads_are_not_ours_to_judge_without_the_adapter() -> None:
    facts = with_hpa(metric(NAME), status=refused(NAME))
    facts.release = Fact(None)
    assert len(found(facts, "GMA401")) == 1
    facts.workloads = Fact([workload(gpus=0)])
    assert found(facts, "GMA401", "GMA410") == []
