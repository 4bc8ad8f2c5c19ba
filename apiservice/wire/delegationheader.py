"""The header of a request that another server of the metrics APIs delegates to this one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DELEGATED: Final = "x-metrics-delegated"
"""Such a request is never delegated further, and discovery then lists this server's own metrics."""
_NAME: Final = DELEGATED.encode()


def is_delegated(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a server that delegates sent the request."""
    return any(name == _NAME for name, _ in headers)
