"""The outputs in docs/explain.md are real: each is the text that a test of the command compares."""

from __future__ import annotations

import re
import tomllib

import click
import pytest

from adapter.explain.commands import explain
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
RIGHTS = (ROOT / "docs" / "rights.md").read_text(encoding="utf-8")
TEXTS = ROOT / "tests" / "adapter" / "explain" / "texts"
OUTPUTS = re.findall(r"<!-- output: ([a-z-]+) -->\n\n```text\n(.*?)```\n", PAGE, re.DOTALL)


def test_every_text_block_is_an_output() -> None:
    assert len(OUTPUTS) == PAGE.count("```text") >= 4


@pytest.mark.parametrize(("name", "shown"), OUTPUTS, ids=[name for name, _ in OUTPUTS])
def test_an_output_in_the_page_is_what_the_command_prints(name: str, shown: str) -> None:
    assert shown == (TEXTS / f"{name}.txt").read_text(encoding="utf-8")


def test_the_table_of_rights_has_every_command() -> None:
    with click.Context(explain) as context:
        names = explain.list_commands(context)
    assert [name for name in names if f"| `explain {name}` |" not in RIGHTS] == []


def test_kubectl_gpu_is_the_same_program() -> None:
    """kubectl runs ``kubectl-gpu`` of the PATH for ``kubectl gpu``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["kubectl-gpu"] == project["scripts"]["gpu-metrics-adapter"]
