"""What is known about a delegate from the settings, and the bounds of a request to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

TIMEOUT: Final = 10.0
"""Seconds for one request, its time in the queue included."""
LIST_BYTES: Final = 8 << 20
"""Bytes of a discovery document."""
MAX_ROWS: Final = 20_000
"""Rows of a discovery document."""


@dataclass(frozen=True, slots=True)
class DelegateOptions:
    """One delegate."""

    name: str
    url: str
    """Such as ``https://prometheus-adapter.monitoring.svc:443``, without a path."""
    server_name: str
    """The name that its certificate must have."""
    groups: Collection[str]
    names: tuple[str, ...] = ()
    """Patterns of the metrics that it is asked for; empty for those that its discovery lists."""
    timeout: float = TIMEOUT
    at_once: int = 16
    """Requests under way at the same time."""
    waiting: int = 64
    """Requests that wait for their turn."""
    max_bytes: int = 4 << 20
    """Bytes of an answer: some 14,000 pods."""
