"""The commands that the demo prints run in a second terminal, as they are printed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from adapter.demo.captions import CAPTIONS
from adapter.demo.run import NAME, adapter_command
from adapter.demo.screen import write_opening
from adapter.demo.state import DemoState


def program(folder: Path) -> Path:
    folder.mkdir()
    path = folder / NAME
    path.touch(mode=0o755)
    return path


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my venv" / "python"))


@pytest.mark.usefixtures("empty_path")
def test_a_command_on_the_path_is_printed_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin").parent))
    assert adapter_command() == NAME


@pytest.mark.usefixtures("empty_path")
def test_a_command_beside_the_interpreter_is_printed_with_its_path(tmp_path: Path) -> None:
    path = program(tmp_path / "my venv")
    assert adapter_command() == f"'{path}'", "quoted for the shell"


@pytest.mark.usefixtures("empty_path")
def test_a_checkout_that_is_not_installed_is_run_as_a_module(tmp_path: Path) -> None:
    assert adapter_command() == f"'{tmp_path}/my venv/python' -m adapter"


async def test_each_printed_command_is_one_that_the_shell_finds(state: DemoState) -> None:
    state.adapter = "/opt/x/gpu-metrics-adapter"
    file = io.StringIO()
    write_opening(state, Console(file=file, width=100), "/tmp/gma-demo-x")
    text = file.getvalue() + "".join(caption.say(state) for caption in CAPTIONS)
    for verb in ("top", "explain hpa", "idle"):
        assert f"/opt/x/gpu-metrics-adapter {verb}" in text
        assert f" gpu-metrics-adapter {verb}" not in text
