"""Whether a target can be meant as that of a latency: they are in seconds, not in milliseconds.

A target that nobody can mean keeps an HPA from ever scaling out. ``1`` is one second: too long for
a token, and usual for a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.servermeasures import gateway_metric

_MOST: Final[Mapping[Latency, int]] = {
    Latency.FIRST_TOKEN: 60,
    Latency.OUTPUT_TOKEN: 1,
    Latency.QUEUE: 120,
    Latency.REQUEST: 3600,
}
"""Seconds from which on a number is in milliseconds, or a mistake. Reasoning models answer for many
minutes; at a second for each token nobody reads along."""
_TENTHS: Final = 5
"""Below it, a number of milliseconds is shorter than any step of a model."""


def latency_of(metric: str) -> Latency | None:
    """Return the latency of which a metric, or a gateway's one, is a statistic; None for others."""
    latency, _, _ = metric.rpartition("_")
    return next((one for one in Latency if latency in (one.value, gateway_metric(one.value))), None)


def likely_target(metric: str, number: Decimal) -> str | None:
    """Return the target that was probably meant, as a quantity; None if the number can be meant.

    Args:
        metric: the metric.
        number: its target in seconds.
    """
    latency = latency_of(metric)
    if latency is None or number < _MOST[latency]:
        return None
    return f"{int(number * 100)}m" if number < _TENTHS else f"{int(number)}m"
