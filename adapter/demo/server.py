"""The real ``serve`` as a child process, configured for the demo and always ended."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adapter.demo.certificates import CLIENT_NAME, FrontProxy

HOST = "127.0.0.1"
WINDOW = 30.0
"""Seconds of ``values.window``, of ``values.collect_interval`` and, below, of
``source.scrape.interval``: the defaults, in simulated time."""
COLLECT = 30.0
SCRAPE = 5.0
AGE_LIMIT = 2 * COLLECT + SCRAPE
_GRACE = 10.0
_PR_SET_PDEATHSIG = 1
_TAIL = 15


class DemoError(Exception):
    """The demo cannot continue; the text says why and what to do."""


def choose_port(wanted: int) -> int:
    """Return ``wanted``, or a free port for 0.

    Raises:
        DemoError: the port is in use or not allowed.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError as error:
            raise DemoError(
                f"port {wanted} of {HOST} cannot be used ({error.strerror}): "
                "give another with --port, or leave it out for a free one"
            ) from None
        port: int = probe.getsockname()[1]
        return port


def configuration(
    *,
    folder: Path,
    pods_file: Path,
    proxy: FrontProxy,
    port: int,
    speed: float,
    users: tuple[str, ...],
) -> dict[str, Any]:
    """Return settings for ``serve``: no cluster, and every interval divided by ``speed``.

    The intervals are real seconds to ``serve``, which runs in real time.
    """
    return {
        "server": {
            "host": HOST,
            "port": port,
            "cert_dir": str(folder / "serving"),
            "cert_names": ["localhost", HOST],
            "drain": 0,
            "grace": 2,
        },
        "authentication": {
            "configmap": False,
            "requestheader_ca_file": str(proxy.ca),
            "requestheader_allowed_names": [CLIENT_NAME],
            "token_review": False,
        },
        "authorization": {"subject_access_review": False, "allow_users": list(users)},
        "cluster": {"pods_file": str(pods_file), "services": False},
        "source": {
            "kind": "scrape",
            "scrape": {
                "interval": SCRAPE / speed,
                "timeout": max(0.2, 3 / speed),
                "max_backoff": max(0.2, 2 * SCRAPE / speed),
            },
        },
        "keda": {"enabled": False},
        "values": {"window": WINDOW / speed, "collect_interval": COLLECT / speed},
        "log": {"level": "info", "format": "console"},
    }


class Serve:
    """``gpu-metrics-adapter serve`` as a child process; its output goes to a file."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], command: Sequence[str]) -> None:
        """``command`` is what runs the adapter's command line, such as ``python -m adapter``."""
        self._config = folder / "serve.yaml"
        self.log = folder / "serve.log"
        # JSON is YAML, so one serializer suffices.
        self._config.write_text(json.dumps(settings, indent=2), encoding="utf-8")
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process. It leads a session of its own, so Ctrl-C does not reach it.

        On Linux it ends with this process even if that is killed.
        """
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                "serve",
                "--config",
                str(self._config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )

    async def ended(self) -> None:
        """Wait for the process to end, which it should not.

        Raises:
            DemoError: always, with the end of its log.
        """
        if self._process is None:
            raise DemoError("serve was never started")
        code = await self._process.wait()
        raise DemoError(f"serve ended with exit code {code}; its log ends with:\n{self.tail()}")

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

    def tail(self) -> str:
        """Return the last lines of the log, indented."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
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
