"""The commands about the program itself."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import get_args

import click
import pytest

from adapter import __version__
from adapter.__main__ import serve
from adapter.config.settings.source import SourceSettings
from adapter.pipeline.sources.login import extras
from adapter.tools.client.aboutversion import commit
from tests.adapter.commandline import clean_environ, invoke
from tests.needs import BASH, needs


def test_the_version_is_shown_by_command_and_by_option() -> None:
    assert invoke("--version") == (0, f"gpu-metrics-adapter, version {__version__}\n")
    code, output = invoke("version")
    assert code == 0
    assert output.startswith(invoke("--version").output)
    assert f"Python {platform.python_version()} on " in output
    assert f"\naiohttp {metadata.version('aiohttp')}\n" in output


def test_a_library_that_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = ["none-such>=1; extra == 'azure'", "none_other>=2", "click[a]>=8,<9"]
    monkeypatch.setattr(metadata, "requires", lambda _: rows)
    _, output = invoke("version")
    pip = f"{sys.executable} -m pip install"
    assert f"none-such is not installed: {pip} 'none-such>=1'" in output
    assert f"none_other is not installed: {pip} 'none_other>=2'" in output
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    _, of_uv = invoke("version")
    uv = f"uv pip install --python {sys.executable}"
    assert f"none-such is not installed: {uv} 'none-such>=1'" in of_uv
    assert f"click {metadata.version('click')}" in output


COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLONES = {
    "a branch": {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{COMMIT}\n"},
    "a packed branch": {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/packed-refs": f"# pack-refs\n{COMMIT} refs/heads/main\n",
    },
    "no branch": {".git/HEAD": f"{COMMIT}\n"},
    "a work tree": {
        ".git": "gitdir: elsewhere/worktrees/a\n",
        "elsewhere/worktrees/a/HEAD": "ref: refs/heads/a\n",
        "elsewhere/worktrees/a/commondir": "../..\n",
        "elsewhere/refs/heads/a": f"{COMMIT}\n",
    },
}


@pytest.mark.parametrize("files", CLONES.values(), ids=CLONES)
def test_the_commit_of_a_clone_is_read_from_its_files(
    files: dict[str, str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert commit(tmp_path) == COMMIT


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none\n", "not a commit\n"])
def test_a_clone_that_cannot_be_read_has_no_commit(head: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit(tmp_path) == ""


CHOICES = {
    ("serve", "--source", "promethues"): "did you mean prometheus?",
    ("serve", "--log-level", "wraning"): "did you mean warning?",
    ("nodepool", "--log-format", "jsn"): "did you mean json?",
    ("completion", "bsh"): "did you mean bash?",
    ("top", "worklod"): "did you mean workloads?",
    ("idle", "--by", "namespce"): "did you mean namespace?",
    ("doctor", "-o", "jsn"): "did you mean json?",
    ("doctr",): "doctor",
    ("serve", "--prometheus-ur", "x"): "--prometheus-url",
}


@pytest.mark.parametrize("arguments", CHOICES, ids=" ".join)
def test_a_word_with_a_typing_error_leads_to_the_right_one(arguments: tuple[str, ...]) -> None:
    code, output = invoke(*arguments)
    assert code == 2
    assert CHOICES[arguments] in output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_the_program(shell: str) -> None:
    code, output = invoke("completion", shell)
    assert code == 0
    assert f"_GPU_METRICS_ADAPTER_COMPLETE={shell}_complete" in output


@needs(BASH)
def test_bash_completes_commands() -> None:
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
        "print(sorted({'adapter.config.settings', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"


def test_every_kind_of_source_has_its_choice() -> None:
    (source,) = [option for option in serve.params if option.name == "source"]
    assert isinstance(source.type, click.Choice)
    assert tuple(source.type.choices) == get_args(SourceSettings.model_fields["kind"].annotation)


def test_help_shows_the_defaults_of_the_settings() -> None:
    _, output = invoke("serve", "--help")
    assert "HTTPS port [6443]; 0: any free port." in output
    assert "Source of GPU values [scrape]." in output
