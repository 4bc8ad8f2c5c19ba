"""The past of an HPA from a Prometheus that scrapes kube-state-metrics."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.seriesreader import (
    QueriedSeries,
    SeriesAnswer,
    SeriesReader,
    reader_of,
)
from adapter.tools.client.errors import ClientError

Json = dict[str, Any]

_HPA: Final = "kube_horizontalpodautoscaler"
_QUERIES: Final = {
    "value": f"{_HPA}_status_target_metric",
    "goal": f"{_HPA}_spec_target_metric",
    "current": f"{_HPA}_status_current_replicas",
    "desired": f"{_HPA}_status_desired_replicas",
}
_FIXES: Final = {
    "connect": "check --prometheus",
    "denied": "name the configuration that has its login with --config",
    "timeout": "ask for a shorter time",
    "too_large": "ask for a shorter time",
}
"""Reason of a failure -> what to do about it here."""
_POINTS: Final = 480
_STEP: Final = 15
LONGEST: Final = 20.0
"""Seconds of one query."""
MOST_BYTES: Final = 8 << 20
"""Bytes of one answer."""


def range_reader(options: PrometheusOptions) -> SeriesReader:
    """Return a reader with the page's limits.

    Raises:
        CredentialError: a TLS file cannot be used.
    """
    return reader_of(replace(options, timeout=LONGEST, max_bytes=MOST_BYTES))


async def read_range(reader: SeriesReader, namespace: str, name: str, seconds: int) -> Json:
    """Return ``time``, ``value``, ``goal``, ``current`` and ``desired`` of an HPA.

    The value is that of the metric that comes first by name.

    Raises:
        ClientError: Prometheus did not answer, or knows nothing of the HPA.
    """
    step = max(_STEP, math.ceil(seconds / _POINTS))
    end = int(time.time())
    matchers = f"{{namespace={json.dumps(namespace)},horizontalpodautoscaler={json.dumps(name)}}}"
    try:
        answers = await asyncio.gather(
            *(
                reader.range(f"{metric}{matchers}", end - seconds, end, step)
                for metric in _QUERIES.values()
            )
        )
    except SourceError as error:
        text = "; ".join(filter(None, (str(error), _FIXES.get(error.reason, ""))))
        status = 504 if error.reason == "timeout" else 502
        raise ClientError(f"Prometheus at {reader.url}: {text}", status) from None
    columns = {
        key: _first_points(answer.series) for key, answer in zip(_QUERIES, answers, strict=True)
    }
    times = sorted({moment for points in columns.values() for moment in points})
    if not times:
        raise _no_data_error(reader.url, f"{namespace}/{name}", answers)
    rows: Mapping[str, list[float | None]] = {
        key: [points.get(moment) for moment in times] for key, points in columns.items()
    }
    return {"time": times, **rows}


def _no_data_error(url: str, hpa: str, answers: list[SeriesAnswer]) -> ClientError:
    left_out: Counter[str] = sum((answer.left_out for answer in answers), Counter())
    if left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
        text = f"Prometheus at {url} has no usable sample of {hpa} ({reasons}): check the store"
        return ClientError(text, 502)
    text = f"Prometheus at {url} has no {_HPA} series of {hpa}"
    return ClientError(f"{text}: check that it scrapes kube-state-metrics", 404)


def _first_points(series: list[QueriedSeries]) -> dict[float, float]:
    """Return the points of the metric that comes first by name."""
    if not series:
        return {}
    chosen = min(series, key=lambda row: sorted(row.labels.items()))
    return {moment: value for moment, value in chosen.points if math.isfinite(value)}
