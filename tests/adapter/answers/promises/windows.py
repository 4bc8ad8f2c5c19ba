"""Windows of made-up servers."""

from __future__ import annotations

from adapter.pipeline.catalog.increases import Increase
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow

BOUNDS = (0.25, 0.5, 1.0, 2.5)


def increase(start: float, end: float, kept: float, late: float) -> Increase:
    """Return requests below and above one second."""
    return Increase(start, end, BOUNDS, (0.0, kept, 0.0, late, 0.0), None)


def window(
    end: float,
    load: float,
    kept: float = 20.0,
    late: float = 0.0,
    *,
    waiting: float = 0.0,
    tokens: float | None = None,
    requests: float | None = None,
    cache: float | None = None,
    itl: float | None = None,
) -> RequestWindow:
    """Return a pod's minute until ``end``; ``load`` counts the waiting requests too.

    Args:
        itl: seconds between two tokens, the upper bound of the bucket of all.
    """
    latencies = {Latency.FIRST_TOKEN: increase(end - 60, end, kept, late)}
    if itl is not None:
        counts = (kept + late, 0.0)
        latencies[Latency.OUTPUT_TOKEN] = Increase(end - 60, end, (itl,), counts, None)
    return RequestWindow(
        time=end,
        latencies=latencies,
        output_tokens=tokens,
        requests=requests,
        running=load - waiting,
        waiting=waiting,
        cache=cache,
    )
