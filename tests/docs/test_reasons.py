"""Every reason that the code writes is one that the documents explain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.api.provider import TOO_LARGE
from adapter.attribution import credibility, split, unnamed, values
from adapter.attribution.reading import Absence
from adapter.attribution.reasons import REASONS, explanation
from adapter.cluster.pod import Owner, PodRef
from adapter.devices.assignment import Mismatch
from adapter.devices.series import UNSUPPORTED, Doubt
from adapter.serve.reasons import ABSENCES, FAILURES, REFUSALS, REJECTS, UNSCRAPABLE
from apiservice.runtime import shares
from tests.adapter.world import make_pod
from tests.docs.pages import ROOT


def literals(module: Path, called: str, subscripted: str) -> Iterator[str]:
    """Reasons written in place: the first argument of a call, or a key of a counter."""
    source = module.read_text(encoding="utf-8")
    if called not in source and subscripted not in source:
        return
    for found in ast.walk(ast.parse(source)):
        text: Any = None
        if isinstance(found, ast.Call) and ast.unparse(found.func) == called and found.args:
            text = found.args[0]
        if isinstance(found, ast.Subscript) and ast.unparse(found.value).endswith(subscripted):
            text = found.slice
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value


@pytest.mark.parametrize(
    ("folder", "called", "subscripted", "known"),
    [
        ("adapter/sources", "SourceError", ".failures", FAILURES),
        ("adapter", "Absence", ".absent", ABSENCES),
        ("adapter/sources", "Unscrapable", ".unscrapable", UNSCRAPABLE),
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
    found = {text for path in modules for text in literals(path, called, subscripted)}
    # KEDA's are the scaler's own and are not counted.
    assert found - {"gone", "no_gpu"} <= set(known)
    assert known


def test_every_reason_of_the_engine_has_words_and_no_other() -> None:
    engine = {
        *unnamed.UNNAMED,
        *(
            values.UNKNOWN_METRIC,
            values.NO_VALUE,
            values.NOT_EXPORTED,
            values.NOT_SHOWN,
            values.STALE,
            values.CONFLICT,
        ),
        *(values.TOO_FEW, values.NOT_SELECTED, values.PREDECESSOR, values.UNPLACED),
        *(credibility.WAITS, credibility.TOO_MANY, credibility.CLUSTERS, credibility.BOARD),
        *(split.NO_REQUEST, split.SHARE_UNKNOWN, split.NOT_EXACT, split.NO_WEIGHT),
        TOO_LARGE,
        *Mismatch,
        *Doubt,
        UNSUPPORTED,
    }
    assert set(REASONS) == engine


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_has_a_hint_and_a_heading(reason: str) -> None:
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    absence = Absence(reason, "what is known", exporter=PodRef("gpu", "dcgm-1"))
    found = explanation(absence, make_pod("llm", node="n1"), {exporter.ref: exporter}.get)
    assert found.hint
    assert "{" not in found.hint
    assert "what is known" in found.message
    page, _, heading = found.docs.partition("#")
    assert f"\n## {heading}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_a_hint_without_its_names_is_the_fix() -> None:
    found = explanation(Absence(unnamed.NAMES_NO_POD), make_pod("llm", node="n1"), lambda _: None)
    assert found.hint == REASONS[unnamed.NAMES_NO_POD].fix


def test_a_hint_names_the_exporters_own_objects() -> None:
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    absence = Absence(unnamed.NAMES_NO_POD, "http://e", exporter=exporter.ref)
    found = explanation(absence, make_pod("llm", node="n1"), {exporter.ref: exporter}.get)
    assert found.hint == "kubectl -n gpu set env daemonset/dcgm DCGM_EXPORTER_KUBERNETES=true"
