"""A latency from what histograms counted: a quantile or mean, or why there is none.

The servers of a pod and the pods of an object are the same question: everything that was counted is
added up first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.pipeline.attribution.reading import Absence, DeviceReading, Reading
from adapter.pipeline.catalog.increases import Increase
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.devices.options import TelemetryOptions

NO_REQUESTS: Final = "no_requests"
TOO_FEW_REQUESTS: Final = "too_few_requests"
NO_BUCKETS: Final = "no_common_buckets"
NO_SUM: Final = "no_sum_of_latencies"


def latency(
    metric: Metric,
    whole: Increase,
    parts: Sequence[DeviceReading],
    options: TelemetryOptions,
    left_out: tuple[Absence, ...] = (),
    *,
    partial: bool = False,
) -> Reading | Absence:
    """Return the latency of some servers together.

    Args:
        metric: a statistic of a histogram.
        whole: what all of them counted.
        parts: the servers'.
        options: the age limit, and how many requests a latency needs.
        left_out: see :class:`adapter.pipeline.attribution.reading.Reading`.
        partial: see there.
    """
    expires = whole.end + options.oldest
    value, reason, note = _statistic(metric, whole, options.min_requests)
    if value is None:
        return Absence(reason, note, left_out=left_out, counted=tuple(parts), expires=expires)
    return Reading(
        value=value,
        time=whole.end,
        window=metric.span(options.window),
        expires=expires,
        devices=tuple(parts),
        partial=partial,
        left_out=left_out,
        note=note,
    )


def counted_servers(answer: Reading | Absence) -> tuple[DeviceReading, ...]:
    """Return the servers of a pod whose histograms were read, with or without a latency."""
    return answer.devices if isinstance(answer, Reading) else answer.counted


def _statistic(metric: Metric, whole: Increase, least: float) -> tuple[float | None, str, str]:
    """Return the value, or the reason why there is none; and its precision, or the detail."""
    during = f"in {whole.end - whole.start:.0f} s"
    if not whole.count:
        return None, NO_REQUESTS, f"none {during}"
    if whole.count < least:
        return None, TOO_FEW_REQUESTS, f"{whole.count:g} {during}; values.min_requests is {least}"
    counted = f"{whole.count:.0f} {during}"
    if metric.percentile is None:
        return whole.mean, NO_SUM, counted
    quantile = whole.quantile(metric.percentile / 100.0)
    if quantile is None:
        return None, NO_BUCKETS, counted
    if quantile.beyond:
        return quantile.value, "", f"above {quantile.low:g} s, the last bound; {counted}"
    return quantile.value, "", f"between {quantile.low:g} s and {quantile.high:g} s; {counted}"
