"""What one pod's inference server did in a window: latencies, tokens, requests and load, together.

The pairs of load and latency of which a control law learns. A part that the server's page does not
show is None, or missing from ``latencies``; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapter.pipeline.catalog.increases import Increase


class Latency(StrEnum):
    """A latency that servers count in histograms; the name of its metrics, without a statistic."""

    FIRST_TOKEN = "inference_time_to_first_token_seconds"  # noqa: S105 - a metric's name
    OUTPUT_TOKEN = "inference_time_per_output_token_seconds"  # noqa: S105 - a metric's name
    REQUEST = "inference_request_seconds"
    QUEUE = "inference_queue_seconds"


@dataclass(frozen=True, slots=True)
class RequestWindow:
    """One pod's window.

    Args:
        time: epoch seconds of its end, the oldest page behind it.
        latencies: those whose histogram two pages show, also if no request came.
        output_tokens: tokens per second.
        requests: finished requests per second.
        running: requests, at the end.
        waiting: requests, at the end.
        cache: percent of the KV cache in use, at the end.
    """

    time: float
    latencies: Mapping[Latency, Increase]
    output_tokens: float | None
    requests: float | None
    running: float | None
    waiting: float | None
    cache: float | None
