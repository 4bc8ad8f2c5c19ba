"""A standard output that cannot be written is one line and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapter.commandline import clean_environ

COMMANDS = (
    ("--help",),
    ("version",),
    ("doctor", "--list"),
    ("generate", "hpa", "--for", "vllm", "--workload", "llm"),
)
LINE = "gpu-metrics-adapter: standard output cannot be written: No space left on device; free space"
LATE = """
import sys
from adapter.config.process.output import whole_output

with whole_output():
    sys.stdout.write("late\\n")
"""


def run(*arguments: str, unbuffered: str = "") -> tuple[int, str]:
    """What a process with a full standard output ends with, and its standard error."""
    environ = {**clean_environ(), "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = subprocess.run(
            [sys.executable, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environ,
            text=True,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_line(command: tuple[str, ...]) -> None:
    code, output = run("-m", "adapter", *command)
    (line,) = output.splitlines()
    assert (code, line.startswith(LINE)) == (2, True), output


def test_a_full_disk_is_one_line_without_a_buffer() -> None:
    code, output = run("-m", "adapter", "version", unbuffered="1")
    (line,) = output.splitlines()
    assert (code, line.startswith(LINE)) == (2, True), output


def test_what_is_written_when_the_process_ends_is_not_lost_silently() -> None:
    code, output = run("-c", LATE)
    (line,) = output.splitlines()
    assert (code, line.startswith(LINE)) == (2, True), output


def test_a_reader_that_leaves_ends_it_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "adapter", "doctor", "--list"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=clean_environ(),
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
