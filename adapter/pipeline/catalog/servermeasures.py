"""What servers count: latencies in histograms, tokens and requests in counters.

They are read on demand (:mod:`adapter.pipeline.catalog.seriesdemand`): the histograms of a page
have more series than all the rest that is read of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.formulas import Scaled, Unless
from adapter.pipeline.catalog.metric import (
    Combine,
    Formula,
    Kind,
    LoadDirection,
    Metric,
    Scope,
    Unit,
)
from adapter.pipeline.catalog.requestwindow import Latency

OUTPUT_TOKENS: Final = "inference_output_tokens_per_second"
PROMPT_TOKENS: Final = "inference_prompt_tokens_per_second"
FINISHED: Final = "inference_requests_per_second"
STATISTICS: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "mean": None}
"""Suffix of a latency's metric -> percentile."""
WINDOW: Final = 60.0
"""Seconds of a latency and of a rate: requests arrive in fits, and in less time there are few."""
_UNITS: Final = {
    OUTPUT_TOKENS: Unit.TOKENS_PER_SECOND,
    PROMPT_TOKENS: Unit.TOKENS_PER_SECOND,
    FINISHED: Unit.REQUESTS_PER_SECOND,
}
_GROUPS: Final = {
    Latency.FIRST_TOKEN: "time_to_first_token",
    Latency.OUTPUT_TOKEN: "time_per_output_token",
    Latency.REQUEST: "request_time",
    Latency.QUEUE: "queue_time",
}
OF_PROMISES: Final = (
    *(f"{latency}_mean" for latency in Latency if latency is not Latency.QUEUE),
    OUTPUT_TOKENS,
    FINISHED,
)
"""Metrics that need the series which a promise, and the capacity at it, are found from."""
_MAX: Final = 2.0**53
"""The largest count that a number of a page expresses exactly."""


class Measure(NamedTuple):
    """A neutral metric of a kind of server, without a latency's statistic, and its field."""

    metric: str
    field: Field
    formula: Formula


GATEWAY: Final = "inference_gateway_"
"""How the names of metrics of gateways begin."""


def gateway_metric(metric: str) -> str:
    """Return the name that a metric of servers has for gateways.

    The names differ, so that a sum or a quantile over a namespace counts no request twice.
    """
    return metric.replace("inference_", GATEWAY, 1)


def measures(
    part_labels: frozenset[str] | None,
    *,
    first_token: tuple[str, ...] = (),
    output_token: tuple[str, ...] = (),
    request: tuple[str, ...] = (),
    queue: tuple[str, ...] = (),
    output_tokens: tuple[str, ...] = (),
    prompt_tokens: tuple[str, ...] = (),
    requests: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    milliseconds: bool = False,
    unless: tuple[str, ...] = (),
    chosen_labels: bool = False,
    gateway: bool = False,
) -> tuple[Measure, ...]:
    """Return what a kind of server counts. Of each measure, the names on pages, the usual first.

    Args:
        part_labels: labels that identify the parts of a server; see
            :class:`adapter.pipeline.catalog.field.Field`.
        first_token: histogram of the time until the first token.
        output_token: histogram of the time between output tokens.
        request: histogram of the whole time of a request.
        queue: histogram of the time in the server's queue.
        output_tokens: counter.
        prompt_tokens: counter.
        requests: counter of the requests that ended.
        beside: labels that divide ``requests``, such as the reason why a request ended.
        milliseconds: the histograms are in milliseconds.
        unless: fields of another program that says the same better on its page.
        chosen_labels: see :class:`adapter.pipeline.catalog.field.Field`.
        gateway: the program is a gateway.
    """
    unit = Unit.MILLISECONDS if milliseconds else Unit.SECONDS
    latencies = {
        Latency.FIRST_TOKEN: first_token,
        Latency.OUTPUT_TOKEN: output_token,
        Latency.REQUEST: request,
        Latency.QUEUE: queue,
    }
    counters = {OUTPUT_TOKENS: output_tokens, PROMPT_TOKENS: prompt_tokens, FINISHED: requests}
    fields: list[tuple[str, Field]] = [
        (metric, _latency(names, part_labels, unit, _GROUPS[metric]))
        for metric, names in latencies.items()
        if names
    ]
    fields += [
        (metric, _counter(names, part_labels, _UNITS[metric], beside))
        for metric, names in counters.items()
        if names
    ]
    return tuple(
        Measure(
            gateway_metric(metric) if gateway else metric,
            replace(field, chosen_labels=chosen_labels),
            Unless(Scaled(field.name), unless) if unless else Scaled(field.name),
        )
        for metric, field in fields
    )


def measures_behind(older: tuple[Measure, ...], newer: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """Return older measures, each of which counts only on a page without the newer one.

    For a page that writes both, with more labels under the newer name than under the older one.
    """
    of_metric = {measure.metric: measure.field.name for measure in newer}
    return tuple(
        measure._replace(
            formula=Unless(measure.formula, (of_metric[measure.metric],), with_fewer_labels=True)
        )
        for measure in older
    )


def _latency(
    names: tuple[str, ...], part_labels: frozenset[str] | None, unit: Unit, group: str
) -> Field:
    first, *others = names
    return Field(
        first,
        unit,
        _MAX,
        kind=Kind.HISTOGRAM,
        renamed=tuple((name, 1.0, unit) for name in others),
        group=group,
        scope=Scope.SERVER,
        divisible=False,
        on_demand=True,
        from_zero=True,
        part_labels=part_labels,
        load=LoadDirection.RISES,
    )


def _counter(
    names: tuple[str, ...],
    part_labels: frozenset[str] | None,
    unit: Unit,
    beside: tuple[str, ...],
) -> Field:
    first, *others = names
    return Field(
        first,
        unit,
        _MAX,
        kind=Kind.RATE,
        over_devices=Combine.SUM,
        over_pods=Combine.SUM,
        renamed=tuple((name, 1.0, unit) for name in others),
        group="request_counters",
        scope=Scope.SERVER,
        divisible=False,
        on_demand=True,
        from_zero=True,
        parts=beside if unit is Unit.REQUESTS_PER_SECOND else (),
        over_parts=Combine.SUM,
        part_labels=part_labels,
        load=LoadDirection.RISES,
    )


def metrics_of(measured: Mapping[str, tuple[Formula, ...]]) -> Iterator[Metric]:
    """Yield the neutral metrics.

    Args:
        measured: the name, without a latency's statistic -> ways to compute it.
    """
    for latency in (name for one in Latency for name in (one.value, gateway_metric(one))):
        if latency in measured:
            yield from _statistics(latency, measured[latency])
    for metric, unit in _UNITS.items():
        for name in (metric, gateway_metric(metric)):
            if name in measured:
                yield _metric(name, unit, Kind.RATE, Combine.SUM, measured[name])


def _statistics(latency: str, formulas: tuple[Formula, ...]) -> Iterator[Metric]:
    for suffix, percentile in STATISTICS.items():
        name = f"{latency}_{suffix}"
        plain = _metric(name, Unit.SECONDS, Kind.HISTOGRAM, Combine.MEAN, formulas)
        yield replace(plain, percentile=percentile)


def _metric(
    name: str, unit: Unit, kind: Kind, how: Combine, formulas: tuple[Formula, ...]
) -> Metric:
    return Metric(
        name,
        unit,
        kind,
        formulas,
        over_devices=how,
        over_pods=how,
        scope=Scope.SERVER,
        divisible=False,
        window=WINDOW,
        on_demand=True,
        load=LoadDirection.RISES,
    )
