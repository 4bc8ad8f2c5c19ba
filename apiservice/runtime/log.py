"""A log for modules that the command line imports too, which writes nothing to a log.

Importing structlog takes 0.05 s, and twice that where rich is installed.
"""

from __future__ import annotations

from typing import Any


class LateLog:
    """structlog's logger of a name; the library is imported at the first line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog  # noqa: PLC0415 - see the module

        return getattr(structlog.get_logger(self._name), method)
