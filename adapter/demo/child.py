"""Commands of the adapter as child processes of the demo, always ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_GRACE = 10.0
_PR_SET_PDEATHSIG = 1
_TAIL = 15


class DemoError(Exception):
    """The demo cannot continue; the text says why and what to do."""


class Child:
    """One command, such as ``gpu-metrics-adapter serve``. Its output goes to a file.

    Args:
        folder: where the file is.
        command: what runs the adapter's command line, such as ``python -m adapter``.
        arguments: the name of the command, and its flags.
    """

    def __init__(self, folder: Path, command: Sequence[str], arguments: Sequence[str]) -> None:
        self._name = arguments[0]
        self.log = folder / f"{self._name}.log"
        self._command = (*command, *arguments)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process. It leads a session of its own, so Ctrl-C does not reach it.

        On Linux it ends with this process even if that is killed.
        """
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )

    async def wait_for_end(self) -> None:
        """Wait for the process to end, which it should not before the demo.

        Raises:
            DemoError: always, with the end of its log.
        """
        if self._process is None:
            raise DemoError(f"{self._name} was never started")
        code = await self._process.wait()
        raise DemoError(
            f"{self._name} ended with exit code {code}; its log ends with:\n{self.tail()}"
        )

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL to what still runs after the grace period."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def output(self) -> str:
        """Return what it has written."""
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def tail(self) -> str:
        """Return the last lines of the log, indented."""
        lines = self.output().splitlines()
        return "\n".join(f"    {line}" for line in lines[-_TAIL:]) or "    (nothing was written)"


def _end_with_parent() -> Callable[[], None] | None:
    """Return what a child runs first so that the kernel ends it with its parent: prctl(2)."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # The parent ended before prctl was called.
            os._exit(1)

    return ask


def _environment() -> dict[str, str]:
    """Return the environment without settings for the user's own adapter, and with this package.

    The demo finds a checkout that is not installed, no matter in which folder it starts.
    """
    ours = {key: value for key, value in os.environ.items() if not key.startswith("GMA_")}
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [ours.get("PYTHONPATH")])]
    return ours | {"PYTHONPATH": os.pathsep.join(paths)}
