"""gRPC's own log lines, which are in no form that we log in: counted in place of printed.

Its Python part logs, with a traceback, what peers cause: a health check that is no protobuf.
The core is silenced by :mod:`adapter.keda.server`, because that must happen before its import.
"""

from __future__ import annotations

import logging

import structlog

log = structlog.get_logger(__name__)

_LONGEST = 200
"""Characters of a message that are shown, at level debug."""


class GrpcLog(logging.Handler):
    """Counts what gRPC's Python part would log."""

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0
        """Lines of level error or above, since the start."""

    def install(self) -> None:
        """Take every line of gRPC's loggers from now on."""
        logger = logging.getLogger("grpc")
        logger.handlers = [self]
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line; it is shown at level debug, without its traceback."""
        self.errors += record.levelno >= logging.ERROR
        log.debug("gRPC reports", message=record.getMessage()[:_LONGEST])
