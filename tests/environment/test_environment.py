"""environment.sh creates the environment, or says in one line what is missing and the fix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "environment.sh"
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


def run(folder: Path, python: str, *versions: str) -> subprocess.CompletedProcess[str]:
    """Run it in an empty folder; ``versions`` are those supported, else this Python's."""
    command = ["/bin/sh", str(SCRIPT), python, ".venv", *(versions or (OWN,))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that it ends with."""
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_python_at_all(tmp_path: Path) -> None:
    line = refusal(run(tmp_path, "", "3.11", "3.12", "3.13"))
    assert "no Python 3.11 to 3.13 is on the PATH: install one" in line
    assert "make PYTHON=/path/to/python3" in line


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    assert "/no/python cannot be run: install Python" in refusal(run(tmp_path, "/no/python"))


def test_an_unsupported_python(tmp_path: Path) -> None:
    line = refusal(run(tmp_path, sys.executable, "3.1", "3.2"))
    assert f"is Python {OWN}, which is not supported: install Python 3.1 to 3.2, or" in line


def test_a_python_without_ensurepip(tmp_path: Path) -> None:
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    python = program(tmp_path / "python3", f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"')
    line = refusal(run(tmp_path, python))
    assert (
        f"lacks the module ensurepip: install it (Debian, Ubuntu: apt-get install python{OWN}-venv)"
        in line
    )
    assert not (tmp_path / ".venv").exists()


PIP = {
    "no network": (
        (
            "WARNING: Retrying (total=4) after connection broken by 'NewConnectionError('<x>: "
            "Failed to establish a new connection: [Errno 111] Connection refused')': /simple/a/\n"
            "ERROR: No matching distribution found for a==1.0"
        ),
        "pip reaches no package index (see .venv/pip.log): connect this machine, or set PIP_INDEX",
    ),
    "no compiler": (
        (
            "      running build_ext\n"
            "      error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory\n"
            "  ERROR: Failed building wheel for a"
        ),
        "there is no compiler, or not Python's headers (see .venv/pip.log): install both",
    ),
    "other files": (
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
        "serves other files than requirements-dev.lock names",
    ),
    "anything else": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "pip failed: Could not install packages due to an OSError: [Errno 28] No space left",
    ),
}


@pytest.mark.parametrize(("printed", "said"), PIP.values(), ids=PIP)
def test_a_failure_of_pip(printed: str, said: str, tmp_path: Path) -> None:
    """What pip prints in each case, with its environment replaced by a stand-in."""
    (tmp_path / "printed").write_text(printed + "\n")
    venv = tmp_path / ".venv" / "bin" / "python"
    program(tmp_path / "pip", "cat printed >&2; exit 1")
    python = program(
        tmp_path / "python3",
        f'[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"\n'
        f"mkdir -p {venv.parent} && cp {tmp_path / 'pip'} {venv}",
    )
    done = run(tmp_path, python)
    assert said in refusal(done)
    assert printed in (tmp_path / ".venv" / "pip.log").read_text()
    assert "installing the locked packages in .venv" in done.stdout


def test_an_environment_of_another_python_is_made_again(tmp_path: Path) -> None:
    """The folder is passed to venv with --clear; of the same Python, without."""
    venv = program(
        tmp_path / ".venv" / "bin" / "python", 'case "$*" in -V) echo Python 3.0.1;; esac'
    )
    python = program(
        tmp_path / "python3",
        f'[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"\necho "$@" >> asked',
    )
    assert run(tmp_path, python).returncode == 0
    program(Path(venv), f'[ "$1" = -V ] && exec {sys.executable} -V; exit 0')
    assert run(tmp_path, python).returncode == 0
    assert (tmp_path / "asked").read_text() == "-m venv --clear .venv\n-m venv .venv\n"
