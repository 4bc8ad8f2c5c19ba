"""docs/versions.md names the versions that the tests pin."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.e2e.programs import HELM_VERSION, KUBERNETES_VERSION

_PROGRAMS = "tests/e2e/programs"


def _pinned(folder: str, module: str) -> str:
    text = (ROOT / folder / "go.mod").read_text(encoding="utf-8")
    match = re.search(rf"^\s+{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert match is not None, f"{folder}/go.mod pins no version of {module}"
    return match[1]


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


_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PYTHONS = [
    name.rpartition(" ")[2]
    for name in _PROJECT["project"]["classifiers"]
    if name.startswith("Programming Language :: Python :: 3.")
]


def test_the_supported_versions_of_python_are_all_from_the_oldest_on() -> None:
    oldest, newest = (int(version.removeprefix("3.")) for version in (_PYTHONS[0], _PYTHONS[-1]))
    assert [f"3.{minor}" for minor in range(oldest, newest + 1)] == _PYTHONS
    assert _PROJECT["project"]["requires-python"] == f">={_PYTHONS[0]}"
    assert _PROJECT["tool"]["mypy"]["python_version"] == _PYTHONS[0]
    assert _PROJECT["tool"]["ruff"]["target-version"] == f"py{_PYTHONS[0].replace('.', '')}"


def test_the_makefile_looks_for_the_supported_versions() -> None:
    command = ["make", "--no-print-directory", "--eval", "versions: ; @echo $(PYTHONS)", "versions"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == _PYTHONS


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_quick_starts_name_the_supported_versions(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"needs Python {', '.join(_PYTHONS[:-1])} or {_PYTHONS[-1]} and" in text


def test_the_tested_versions_of_python_are_the_supported_ones() -> None:
    rows = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row.startswith(f"| Python | {', '.join(_PYTHONS)} |")]


def test_continuous_integration_tests_every_supported_version() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    gate = [
        step["with"]["python-version"]
        for step in jobs["run"]["steps"]
        if "setup-python" in step.get("uses", "")
    ]
    assert [*gate, *jobs["python"]["strategy"]["matrix"]["version"]] == _PYTHONS
    assert jobs["python"]["steps"][-1]["run"].startswith("make test PYTHON=python")
