"""Selectors of metrics that another program answers for are not judged by the adapter's labels."""

from __future__ import annotations

import pytest

from adapter.tools.doctor.checks.hpapods import metrics_apis
from adapter.tools.doctor.checks.hpatargets import nothing_selected, selects_no_series
from tests.adapter.answers.causes.scene import Scene
from tests.adapter.answers.causes.situations import EXTERNAL, UP
from tests.adapter.tools.doctor.faults.hpapods import facts_of


@pytest.mark.parametrize(
    ("service", "judged"), [("keda-metrics-apiserver", False), ("gpu-metrics-adapter", True)]
)
def test_selectors_are_judged_only_if_the_adapter_answers(service: str, judged: bool) -> None:
    scene = Scene().metrics("External", "gpu_utilization")
    metric = scene.hpa["spec"]["metrics"][0]["external"]["metric"]
    metric["selector"] = {"matchLabels": {"namespace": "team"}}
    facts = facts_of(scene.apiservices((EXTERNAL, UP)).served(service))
    wrong = [row for row in nothing_selected(facts) if "selector" in row.message]
    assert bool(list(selects_no_series(facts))) is judged
    assert bool(wrong) is judged
    assert bool(list(metrics_apis(facts))) is not judged
