"""What the documents say about explain and the rights of the user's tools."""

from __future__ import annotations

import tomllib

import click

from adapter.tools.doctor.model import CheckSection
from adapter.tools.explain.commands import explain
from tests.docs.pages import ROOT

RIGHTS = (ROOT / "docs" / "rights.md").read_text(encoding="utf-8")


def test_the_table_of_rights_has_every_command() -> None:
    with click.Context(explain) as context:
        names = explain.list_commands(context)
    assert [name for name in names if f"| `explain {name}` |" not in RIGHTS] == []


def test_the_rights_of_doctor_have_every_section_of_checks() -> None:
    text = RIGHTS.partition("\n## `doctor`\n")[2].partition("\n## ")[0]
    items = [line[2:].partition(":")[0] for line in text.splitlines() if line.startswith("- ")]
    sections = [section for item in items for section in item.split(", ")]
    assert sorted(sections) == sorted(CheckSection)


def test_kubectl_gpu_is_the_same_program() -> None:
    """kubectl runs ``kubectl-gpu`` of the PATH for ``kubectl gpu``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["kubectl-gpu"] == project["scripts"]["gpu-metrics-adapter"]
