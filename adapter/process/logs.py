"""Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys

import structlog

from adapter.process.loglines import LogLines
from adapter.settings.log import LogSettings


def configure(settings: LogSettings) -> None:
    """Send our logs and the libraries' through one renderer. May be called again on reload."""
    console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        # Its own formatter shows local variables, tokens among them, where rich is installed.
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for chatty in ("httpx", "httpcore", "uvicorn.access", "asyncio", "azure", "google", "botocore"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def _handler() -> logging.Handler:
    """Writes to standard error; the real one may block, and nobody may wait for it."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LogLines):
            return handler  # its thread never ends
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        return LogLines(sys.stderr.fileno())
    return logging.StreamHandler(sys.stderr)
