"""A child process with its log in a file. It never outlives its owner."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class FailedError(AssertionError):
    """A process ended or did not become ready; the text has the tail of its log."""


def free_port() -> int:
    """Return an unused loopback port."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_until(
    check: Callable[[], T | None], what: str, seconds: float = 120.0, every: float = 0.1
) -> T:
    """Poll until ``check`` returns a true value, and return it.

    Raises:
        FailedError: it did not within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        if value := check():
            return value
        if time.monotonic() > deadline:
            raise FailedError(f"after {seconds:.0f} s still not: {what}")
        time.sleep(every)


class Process:
    """One program. ``start`` may be called again after ``stop``."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.arguments = [str(argument) for argument in arguments]
        self.log = log
        self._environment = dict(os.environ) | dict(environment or {})
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running child."""
        if self._child is None:
            raise FailedError(f"{self.log.stem} is not started")
        return self._child.pid

    def start(self) -> None:
        """Start the program; its output is appended to the log."""
        with self.log.open("ab") as sink:
            self._child = subprocess.Popen(
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=self._environment,
            )

    def running(self) -> bool:
        """Whether it runs."""
        return self._child is not None and self._child.poll() is None

    def check(self) -> None:
        """Raise FailedError with the log's tail if the program has ended."""
        if not self.running():
            code = self._child.returncode if self._child else None
            raise FailedError(f"{self.log.stem} ended with {code}:\n{self.tail()}")

    def wait_ready(self, ready: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait until ``ready``. A refused connection means not yet.

        Raises:
            FailedError: the program ended, or was not ready in time.
        """

        def look() -> bool:
            self.check()
            with contextlib.suppress(OSError):
                return ready()
            return False

        try:
            wait_until(look, f"{self.log.stem} is ready", seconds)
        except FailedError as error:
            raise FailedError(f"{error}\n{self.tail()}") from None

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 15.0) -> int:
        """Stop it, with SIGKILL after ``seconds``; return the exit status."""
        if self._child is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(how)
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        code: int = self._child.returncode
        self._child = None
        return code

    def tail(self, lines: int = 30) -> str:
        """Return the log's last lines."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
