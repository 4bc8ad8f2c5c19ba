"""What the scaler tells about itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from apiservice.selfmetrics.durations import Durations

UNARY: Final = ("GetMetricSpec", "GetMetrics", "IsActive")
"""Methods that answer once."""
STREAMS: Final = ("StreamIsActive", "StreamMetricSpec")
"""Methods that answer again and again."""


@dataclass(slots=True)
class KedaStats:
    """Counts since the start. Methods and codes are fixed sets."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls ended, by method and gRPC code."""
    streams: Counter[str] = field(default_factory=Counter)
    """Streams open now, by method."""
    durations: dict[str, Durations] = field(
        default_factory=lambda: {method: Durations() for method in UNARY}
    )
    """What calls took, by method."""
    problem: Callable[[], str] = lambda: ""
    """Why the certificate files as they are now are not in force; empty when they are."""
    library_errors: Callable[[], int] = lambda: 0
    """Errors that gRPC itself reported."""
