"""What ``/metrics`` says about the calls of KEDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.keda.stats import STREAMS, UNARY, KedaStats
from apiservice.families import counter, gauge, histogram

CODES: Final = (
    *("OK", "CANCELLED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAVAILABLE", "INTERNAL"),
    "RESOURCE_EXHAUSTED",
)
"""gRPC's, as this service gives them."""

CALLS: Final = counter(
    "gma_keda_calls_total",
    "Calls of KEDA that ended, by gRPC status: INVALID_ARGUMENT is the trigger's mistake, "
    "FAILED_PRECONDITION a value that is missing, RESOURCE_EXHAUSTED a stream beyond the bound.",
    *("method", "code"),
    known=CODES,
)
DURATIONS: Final = histogram(
    "gma_keda_call_duration_seconds", "What calls of KEDA that answer once took.", "method"
)
OPEN: Final = gauge("gma_keda_streams", "Streams of KEDA that are open.", "method", known=STREAMS)
CERTIFICATE: Final = gauge(
    "gma_keda_certificate_ok", "0 while its newest certificate or client CA is refused."
)
LIBRARY: Final = counter(
    "gma_keda_grpc_errors_total",
    "Errors that the gRPC library reported itself, such as a health check that is no protobuf.",
)
FAMILIES: Final = (CALLS, DURATIONS, OPEN, CERTIFICATE, LIBRARY)


def keda_families(stats: KedaStats) -> Iterator[Metric]:
    """Of the scaler."""
    yield CALLS.pairs(stats.calls, (*UNARY, *STREAMS))
    yield DURATIONS.durations(((method,), took) for method, took in stats.durations.items())
    yield OPEN.by(stats.streams)
    yield CERTIFICATE.one(not stats.problem())
    yield LIBRARY.one(stats.library_errors())
