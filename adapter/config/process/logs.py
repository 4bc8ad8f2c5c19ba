"""Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from adapter.config.settings.log import LogSettings

_WAITING: Final = 1000
"""Lines that may wait to be written."""
_FIRST: Final = ("timestamp", "level", "event")
_GOODBYE: Final = 1.0
"""Seconds that the last lines may take at the end of the process."""


class LogLines(logging.Handler):
    """Writes to a file descriptor that may block, fail or be full.

    Args:
        descriptor: a number, such as 2.
        waiting: lines that may wait to be written.
    """

    def __init__(self, descriptor: int, waiting: int = _WAITING) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._most = waiting
        # The garbage collector may run a finalizer that logs while a line is put. Any other queue
        # would then wait for itself.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # Each is counted by one thread only: emitting holds the handler's lock.
        self._taken = 0
        self._done = 0
        self._left_out = 0
        self._unwritten = 0
        self._reported = 0
        # A daemon, without a lock that the end of the interpreter would wait for: see sys.stderr.
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Lines that wait to be written, without the one that is being written."""
        return self._lines.qsize()

    @property
    def lost(self) -> int:
        """Lines that were dropped and not yet reported."""
        return self._left_out + self._unwritten - self._reported

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line. Never waits."""
        try:
            line = self._line(record)
        except Exception:  # as in every handler: a line that cannot be formatted stops nothing
            self.handleError(record)
            return
        if self._lines.qsize() >= self._most:
            self._left_out += 1
            return
        self._taken += 1
        self._lines.put(line)

    def flush(self) -> None:
        """Wait until all lines are written, for a second at most."""
        deadline = time.monotonic() + _GOODBYE
        while self._done < self._taken and time.monotonic() < deadline:
            time.sleep(0.005)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            try:
                self._write(line)
                if self.lost and self._lines.empty():
                    self._report()
            except OSError:
                self._unwritten += 1
            finally:
                self._done += 1

    def _report(self) -> None:
        lost = self.lost
        record = logging.LogRecord(
            __name__,
            logging.WARNING,
            "",
            0,
            "log lines dropped because the reader was too slow: %d",
            (lost,),
            None,
        )
        self._write(self._line(record))
        self._reported += lost

    def _line(self, record: logging.LogRecord) -> bytes:
        return self.format(record).encode("utf-8", "backslashreplace") + b"\n"

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def configure(settings: LogSettings) -> None:
    """Send this project's and the libraries' logs through one renderer. May be called again."""
    console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        # Its own formatter shows local variables, tokens among them, if rich is installed.
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        if console
        else structlog.processors.JSONRenderer()
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if not console:
        shared.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _handler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _in_reading_order,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for chatty in ("httpx", "httpcore", "uvicorn.access", "asyncio", "azure", "google", "botocore"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


@contextmanager
def silence_logs() -> Iterator[None]:
    """Write no log lines: a tool that runs the code of `serve` has an output of its own."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[_drop_event])
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop_event(
    _logger: object, _method: str, _event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    raise structlog.DropEvent


def _in_reading_order(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put the keys that every line has first, in the order in which a person reads them."""
    first = {key: event[key] for key in _FIRST if key in event}
    return {**first, **event}


def _handler() -> logging.Handler:
    """Return a handler for standard error, which may block while no thread may wait for it."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LogLines):
            return handler  # its thread never ends
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        return LogLines(sys.stderr.fileno())
    return logging.StreamHandler(sys.stderr)
