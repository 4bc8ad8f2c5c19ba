"""docs/versions.md names the versions that the tests pin."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT
from tests.e2e.programs import HELM_VERSION, KUBERNETES_VERSION

_PROGRAMS = "tests/e2e/programs"


def _pinned(folder: str, module: str) -> str:
    text = (ROOT / folder / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^\s+{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert found is not None, f"{folder}/go.mod pins no version of {module}"
    return found[1]


@pytest.mark.parametrize(
    ("program", "version"),
    [
        ("Kubernetes", KUBERNETES_VERSION),
        ("Helm", HELM_VERSION),
        ("KEDA", _pinned(f"{_PROGRAMS}/keda", "github.com/kedacore/keda/v2")),
        ("Karpenter", _pinned(f"{_PROGRAMS}/karpenter", "sigs.k8s.io/karpenter")),
        (
            "prometheus-adapter",
            _pinned("load/programs/prometheus-adapter", "sigs.k8s.io/prometheus-adapter"),
        ),
        (
            "Prometheus operator",
            _pinned(f"{_PROGRAMS}/crds", "github.com/prometheus-operator/prometheus-operator"),
        ),
        ("cert-manager", _pinned(f"{_PROGRAMS}/crds", "github.com/cert-manager/cert-manager")),
    ],
)
def test_a_program_is_listed_with_the_version_that_runs(program: str, version: str) -> None:
    rows = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row.startswith(f"| {program} | {version} |")]
