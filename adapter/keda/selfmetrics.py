"""Metrics of KEDA's calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.keda.stats import STREAMS, UNARY, KedaStats
from apiservice.selfmetrics.families import counter, gauge, histogram

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
    """Metrics of the scaler."""
    yield CALLS.pairs(stats.calls, (*UNARY, *STREAMS))
    yield DURATIONS.durations(((method,), took) for method, took in stats.durations.items())
    yield OPEN.by(stats.streams)
    yield CERTIFICATE.one(not stats.problem())
    yield LIBRARY.one(stats.library_errors())
