"""Metrics of KEDA's calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import Metric

from apiservice.selfmetrics.durations import Durations
from apiservice.selfmetrics.families import counter, gauge, histogram

UNARY: Final = ("GetMetricSpec", "GetMetrics", "IsActive")
"""Methods that answer once."""
STREAMS: Final = ("StreamIsActive", "StreamMetricSpec")
"""Methods that answer with a stream."""


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
    """Durations of calls, by method."""
    problem: Callable[[], str] = lambda: ""
    """Why the current certificate files are not in use. Empty if they are in use."""
    library_errors: Callable[[], int] = lambda: 0
    """Errors that gRPC itself reported."""


CODES: Final = (
    *("OK", "CANCELLED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAVAILABLE", "INTERNAL"),
    "RESOURCE_EXHAUSTED",
)
"""gRPC status codes that this service returns."""

CALLS: Final = counter(
    "gma_keda_calls_total",
    "Finished calls of KEDA by gRPC status. INVALID_ARGUMENT: the trigger has a mistake. "
    "FAILED_PRECONDITION: a value is missing. RESOURCE_EXHAUSTED: a limit was reached.",
    *("method", "code"),
    known=CODES,
)
DURATIONS: Final = histogram(
    "gma_keda_call_duration_seconds", "Duration of KEDA's unary calls.", "method"
)
OPEN: Final = gauge("gma_keda_streams", "Open streams of KEDA.", "method", known=STREAMS)
CERTIFICATE: Final = gauge(
    "gma_keda_certificate_ok",
    "0 while the newest certificate or client CA of the KEDA listener is rejected.",
)
LIBRARY: Final = counter(
    "gma_keda_grpc_errors_total",
    "Errors that the gRPC library reported, such as a health check that is not a protobuf message.",
)
FAMILIES: Final = (CALLS, DURATIONS, OPEN, CERTIFICATE, LIBRARY)


def keda_families(stats: KedaStats) -> Iterator[Metric]:
    """Yield the metrics of the scaler."""
    yield CALLS.pairs(stats.calls, (*UNARY, *STREAMS))
    yield DURATIONS.durations(((method,), took) for method, took in stats.durations.items())
    yield OPEN.by(stats.streams)
    yield CERTIFICATE.one(not stats.problem())
    yield LIBRARY.one(stats.library_errors())
