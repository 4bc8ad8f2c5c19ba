"""The commands about the program itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import click
import pytest

from adapter import __version__
from adapter.__main__ import serve
from adapter.settings.source import SourceSettings
from tests.adapter.commandline import clean_environ, invoke


def test_the_version_is_shown_by_command_and_by_option() -> None:
    assert invoke("version") == (0, f"gpu-metrics-adapter, version {__version__}\n")
    assert invoke("version") == invoke("--version")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_the_program(shell: str) -> None:
    code, output = invoke("completion", shell)
    assert code == 0
    assert f"_GPU_METRICS_ADAPTER_COMPLETE={shell}_complete" in output


def test_bash_completes_commands() -> None:
    if shutil.which("bash") is None:
        pytest.skip("needs bash in PATH")
    program = Path(sys.executable).with_name("gpu-metrics-adapter")
    script = (
        'source <("$1" completion bash); COMP_WORDS=("$1" expl); COMP_CWORD=1; '
        '_gpu_metrics_adapter_completion "$1"; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", program],
        env=clean_environ() | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "explain\n"


def test_commands_that_need_no_settings_do_not_import_them() -> None:
    """The import takes half a second, in each command and for each completion in a shell."""
    script = (
        "import sys, adapter.__main__; "
        "print(sorted({'adapter.settings', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"


def test_every_kind_of_source_has_its_choice() -> None:
    (source,) = [each for each in serve.params if each.name == "source"]
    assert isinstance(source.type, click.Choice)
    assert tuple(source.type.choices) == get_args(SourceSettings.model_fields["kind"].annotation)


def test_help_shows_the_defaults_of_the_settings() -> None:
    _, output = invoke("serve", "--help")
    assert "HTTPS port [6443]; 0: any free port." in output
    assert "Source of GPU values [scrape]." in output
