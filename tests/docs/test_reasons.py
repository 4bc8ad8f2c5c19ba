"""Every reason that the code writes is one that the documents explain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.answers.api.groupvalues import INCOMPLETE
from adapter.answers.api.provider import TOO_LARGE
from adapter.answers.promises import ratios
from adapter.pipeline.attribution import (
    credibility,
    latencies,
    split,
    unnamedpods,
    unreadseries,
    values,
)
from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.reasons import (
    REASONS,
    Explanation,
    changed_object,
    explanation,
    lasting_fix,
)
from adapter.pipeline.cluster.pod import Owner, Pod, PodRef
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.devices.series import UNSUPPORTED, Doubt
from adapter.pipeline.store.outlook import UNKNOWN
from adapter.server.serve.reasons import ABSENCES, FAILURES, REFUSALS, REJECTS, UNSCRAPABLE
from apiservice.runtime import shares
from tests.adapter.world import make_pod
from tests.docs.pages import ROOT


def literals(module: Path, called: str, subscripted: str) -> Iterator[str]:
    """Reasons written in place: the first argument of a call, or a key of a counter."""
    source = module.read_text(encoding="utf-8")
    if called not in source and subscripted not in source:
        return
    for node in ast.walk(ast.parse(source)):
        text: Any = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == called and node.args:
            text = node.args[0]
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith(subscripted):
            text = node.slice
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value


@pytest.mark.parametrize(
    ("folder", "called", "subscripted", "known"),
    [
        ("adapter/pipeline/sources", "SourceError", ".failures", FAILURES),
        ("adapter", "Absence", ".absent", ABSENCES),
        ("adapter/pipeline/sources", "Unscrapable", ".unscrapable", UNSCRAPABLE),
        ("adapter", "rejects.count", ".rejects", REJECTS),
        (
            "apiservice",
            "self._cut",
            ".refused",
            (*REFUSALS, *shares.REFUSALS, "certificate", "token", "token-review"),
        ),
    ],
)
def test_every_reason_in_the_code_is_known(
    folder: str, called: str, subscripted: str, known: tuple[str, ...]
) -> None:
    modules = [path for path in (ROOT / folder).rglob("*.py") if "demo" not in path.parts]
    reasons = {text for path in modules for text in literals(path, called, subscripted)}
    # KEDA's are the scaler's own and are not counted.
    assert reasons - {"gone", "no_gpu"} <= set(known)
    assert known


def test_every_reason_of_the_engine_has_words_and_no_other() -> None:
    engine = {
        *unnamedpods.UNNAMED,
        *(
            values.UNKNOWN_METRIC,
            unreadseries.NO_VALUE,
            unreadseries.NOT_EXPORTED,
            unreadseries.NOT_OF_INSTANCES,
            unreadseries.NOT_SHOWN,
            unreadseries.TOO_MANY_PARTS,
            values.STALE,
            values.READING_BEGINS,
            values.CONFLICT,
        ),
        *(values.TOO_FEW, values.NOT_SELECTED, values.PREDECESSOR, values.UNPLACED),
        *(credibility.WAITS, credibility.TOO_MANY, credibility.CLUSTERS, credibility.BOARD),
        *(split.NO_REQUEST, split.SHARE_UNKNOWN, split.NOT_EXACT, split.NO_WEIGHT),
        *(latencies.NO_REQUESTS, latencies.TOO_FEW_REQUESTS),
        *(latencies.NO_BUCKETS, latencies.NO_SUM),
        *(ratios.LEARNING, ratios.NOT_MEASURED),
        TOO_LARGE,
        INCOMPLETE,
        UNKNOWN,
        *Mismatch,
        *Doubt,
        UNSUPPORTED,
    }
    assert set(REASONS) == engine


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_has_a_hint_and_a_heading(reason: str) -> None:
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    absence = Absence(reason, "what is known", exporter=PodRef("gpu", "dcgm-1"))
    advice = explanation(absence, make_pod("llm", node="n1"), {exporter.ref: exporter}.get)
    assert advice.hint
    assert "{" not in advice.hint
    assert "what is known" in advice.message
    page, _, heading = advice.docs.partition("#")
    assert f"\n## {heading}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_a_hint_without_its_names_is_the_fix() -> None:
    advice = explanation(
        Absence(unnamedpods.NAMES_NO_POD), make_pod("llm", node="n1"), lambda _: None
    )
    assert advice.hint == REASONS[unnamedpods.NAMES_NO_POD].fix


def hint_about(exporter: Pod) -> Explanation:
    absence = Absence(unnamedpods.NAMES_NO_POD, "http://e", exporter=exporter.ref)
    return explanation(absence, make_pod("llm", node="n1"), {exporter.ref: exporter}.get)


def test_a_hint_names_the_exporters_own_object_and_who_knows_what_manages_it() -> None:
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    advice = hint_about(exporter)
    assert advice.hint == (
        "set the variable DCGM_EXPORTER_KUBERNETES=true in DaemonSet dcgm in namespace gpu; "
        "`gpu-metrics-adapter explain pod llm -n ml` says where it lasts"
    )
    assert advice.changes == "DaemonSet/gpu/dcgm"


def test_a_hint_names_the_operator_that_the_pods_labels_show() -> None:
    owner = Owner("apps/v1", "DaemonSet", "nvidia-dcgm-exporter")
    labels = {"app.kubernetes.io/managed-by": "gpu-operator"}
    exporter = make_pod("dcgm-1", namespace="gpu", owner=owner, labels=labels)
    assert hint_about(exporter).hint == (
        "set the variable DCGM_EXPORTER_KUBERNETES=true in spec.dcgmExporter.env of the "
        "ClusterPolicy (`kubectl get clusterpolicies.nvidia.com` names it)"
    )


@pytest.mark.parametrize("reason", [name for name, cause in REASONS.items() if cause.change])
def test_no_hint_of_a_change_is_a_command_that_something_may_revert(reason: str) -> None:
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    owner = Owner("apps/v1", "StatefulSet", "llm")
    pod = make_pod("llm-0", node="n1", owner=owner)
    advice = explanation(Absence(reason, exporter=exporter.ref), pod, {exporter.ref: exporter}.get)
    assert advice.changes
    assert not advice.hint.startswith("kubectl")
    changed = changed_object(advice.changes)
    fix = lasting_fix(reason, changed)
    assert fix is not None
    assert fix.command.startswith(f"kubectl -n {changed.namespace} ")
