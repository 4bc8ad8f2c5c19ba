"""Child processes of a benchmark: started, pinned, sampled and always ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


class ProcessError(RuntimeError):
    """A child ended, or did not become ready; the text carries the end of its log."""


class Usage(NamedTuple):
    """What a process had used at one moment."""

    cpu: float
    """User plus system seconds since its start."""
    rss: int
    """Resident bytes now."""
    peak: int
    """Highest resident bytes so far."""
    at: float
    """Monotonic seconds of the sample."""


class Observed:
    """A running program that somebody started."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self._stats = psutil.Process(pid)

    def usage(self) -> Usage:
        """What it has used up to now.

        Raises:
            ProcessError: it has ended.
        """
        try:
            times = self._stats.cpu_times()
            memory = self._stats.memory_info()
        except psutil.Error:
            raise ProcessError(f"{self.name} has ended") from None
        peak = _peak(self.pid) or memory.rss
        return Usage(times.user + times.system, memory.rss, peak, time.monotonic())


class Child(Observed):
    """A program that we started, and end."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        super().__init__(name, process.pid)
        self.log = log
        self._process = process

    def tail(self, lines: int = 15) -> str:
        """The end of what it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def check(self) -> None:
        """Raise ProcessError if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise ProcessError(f"{self.name} ended with {code}\n{self.tail()}")

    def stop(self, grace: float = 10) -> None:
        """SIGTERM, then SIGKILL after ``grace`` seconds."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _peak(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def on_cores(command: Sequence[str], cores: Sequence[int] | None) -> list[str]:
    """``command``, kept on ``cores`` from its first moment; unchanged where that cannot be."""
    if cores is None or shutil.which("taskset") is None:
        return list(command)
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


@contextmanager
def run_child(
    name: str,
    command: Sequence[str],
    folder: Path,
    *,
    cores: Sequence[int] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Child]:
    """Run ``command`` from the repository's root, logging into ``folder``; ended at exit.

    Args:
        cores: the CPUs it may use from its first moment on; None is all.
    """
    log = folder / f"{name}.log"
    command = on_cores(command, cores)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environ or {})},
        )
    child = Child(name, process, log)
    try:
        yield child
    finally:
        child.stop()


def wait_until(child: Child, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until ``ready`` answers true.

    Raises:
        ProcessError: the child ended first, or ``seconds`` passed.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        child.check()
        if ready():
            return
        time.sleep(0.05)
    raise ProcessError(f"{child.name}: {what} not within {seconds:.0f} s\n{child.tail()}")
