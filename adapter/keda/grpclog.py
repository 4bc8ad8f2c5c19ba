"""gRPC's own log lines: counted instead of printed, because their format is not this process's.

gRPC's Python part logs, with a traceback, what peers cause, such as a health check that is not a
protobuf message. :mod:`adapter.keda.server` silences the core, because that must happen before its
import.
"""

from __future__ import annotations

import logging

import structlog

log = structlog.get_logger(__name__)

_LONGEST = 200
"""Characters of a message that are shown, at level debug."""


class GrpcLog(logging.Handler):
    """Counts the lines that gRPC's Python part logs."""

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        """Lines of level error or above since the start."""

    def install(self) -> None:
        """Handle every line of gRPC's loggers from now on."""
        logger = logging.getLogger("grpc")
        logger.handlers = [self]
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line, and log it at level debug without its traceback."""
        self.errors += record.levelno >= logging.ERROR
        log.debug("gRPC reports", message=record.getMessage()[:_LONGEST])
