"""The command line in this process: what it ends with, and all that it writes."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn
from unittest import mock

import structlog

from adapter.__main__ import main

_PATIENCE = 60.0
"""Seconds after which a command that should have been stopped is left to its own test's limit."""


class Ended(NamedTuple):
    """How a command ended, and all that it wrote."""

    code: object
    output: str

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The warnings and errors of its log."""
        rows = [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]
        return [row for row in rows if row["level"] in ("warning", "error")]


class _Terminal(io.StringIO):
    """Calls itself a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """A terminal."""
        return True


def invoke(
    *arguments: str,
    until: Callable[[str], bool] | None = None,
    terminal: bool = False,
    **environ: str,
) -> Ended:
    """Run a command in this process, as its own process would: an exception fails the test.

    Args:
        arguments: the command line without the program.
        until: the command gets SIGTERM once this holds of what it wrote.
        terminal: it writes to a terminal with colours.
        environ: added to this process' environment without settings and clusters.
    """
    written, ended = _Terminal() if terminal else io.StringIO(), threading.Event()

    def stop(holds: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ended.wait(0.02) and time.monotonic() < deadline:
            if holds(written.getvalue()):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=stop, args=(until,)) if until else None
    code: object = 0
    with (
        _own_log(),
        _own_process(),
        mock.patch.dict(os.environ, {**clean_environ(), **environ}, clear=True),
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
    ):
        if thread:
            thread.start()
        try:
            main(arguments)
        except SystemExit as error:
            code = error.code
        finally:
            ended.set()
            if thread:
                thread.join()
    return Ended(code, written.getvalue())


@contextlib.contextmanager
def _own_process() -> Iterator[None]:
    """Let a command tune the interpreter, and let SIGTERM end the command alone.

    Without it, SIGTERM ends the test process if the command does not handle signals yet.
    """
    if threading.current_thread() is not threading.main_thread():  # no signal reaches it
        yield
        return

    def end(*_: object) -> NoReturn:
        raise SystemExit(128 + signal.SIGTERM)

    interval, handler = sys.getswitchinterval(), signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        sys.setswitchinterval(interval)


@contextlib.contextmanager
def _own_log() -> Iterator[None]:
    """Let a command configure the log, and restore it for the tests that follow."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.configure(**configured)


def clean_environ() -> dict[str, str]:
    """This process' environment without settings and clusters."""
    mine = ("GMA_", "KUBE")
    return {key: value for key, value in os.environ.items() if not key.startswith(mine)}
