"""What a recording says of latencies and of a promise, in words and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from adapter.figures import age, count, decimal, join_names, percent
from adapter.hpa import HpaSpec
from adapter.pipeline.catalog.increases import Quantile
from adapter.pipeline.catalog.promise import (
    LATENCIES,
    PromiseError,
    describe_promise,
    describe_seconds,
    parse_promise,
)
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.serverkinds import shown_latencies
from adapter.tools.client.access import Json
from adapter.tools.generate.manifests import API_VERSIONS
from adapter.tools.generate.presets import PRESETS
from adapter.tools.generate.promiseoptions import QUANTILE
from adapter.tools.replay.judgement import SHORTEST, a_day, has_unknown_demand
from adapter.tools.replay.promisestudy import MissedBound, PromiseAnswer
from adapter.tools.replay.servedlatencies import SHARE, SPAN, RecordedLatency
from adapter.tools.replay.study import Study, VariantRun

_PROGRAM: Final = "gpu-metrics-adapter generate hpa"
_MINUTES: Final = round(SPAN / 60)
_TOKENS: Final = "times between tokens"
_UNSAVED: Final = 0.02
"""Share of the GPU-hours below which a difference is noise."""


def latency_lines(answer: PromiseAnswer) -> Iterator[str]:
    """Yield what the recorded replicas keep."""
    for row in answer.served.latencies():
        yield _latency_line(row, answer.served.least)


def advice_lines(answer: PromiseAnswer, spec: HpaSpec) -> Iterator[str]:
    """Yield what to run to scale on the promise that the recorded replicas keep."""
    labels = _keepable(answer.served.latencies())
    if answer.stated is not None or not labels:
        return
    options = " ".join(f"--{key.partition('_')[0]} {value}" for key, value in labels.items())
    cost = f"add {options} to this command to see what an HPA on this promise would cost"
    server = _server(answer.served.series) if spec.target is not None else None
    kind = PRESETS[server].server if server is not None else None
    shown = shown_latencies(kind) if kind is not None else frozenset[Latency]()
    if server is None or any(bound.latency not in shown for bound in parse_promise(labels)):
        yield cost
        return
    command = " ".join((_PROGRAM, *_arguments(spec, server), options))
    yield f"{cost}, and write one with `{command}`"


def _arguments(spec: HpaSpec, server: str) -> Iterator[str]:
    """Yield the options of ``generate hpa`` for an HPA's target and its bounds."""
    target = spec.target
    yield f"--for {server} -n {shlex.quote(spec.namespace)}"
    assert target is not None  # noqa: S101 - the caller looked
    yield f"--workload {shlex.quote(target.name)}"
    if target.kind != "Deployment":
        yield f"--kind {shlex.quote(target.kind)}"
    if API_VERSIONS.get(target.kind) != target.api_version:
        yield f"--api-version {shlex.quote(target.api_version)}"
    low = max(1, spec.min_replicas)  # 0 needs a gateway, too
    if low < spec.max_replicas:
        yield f"--min {low} --max {spec.max_replicas}"


def _keepable(rows: Sequence[RecordedLatency]) -> Mapping[str, str]:
    """Return the labels of the promise that the recorded replicas keep, at bounds of buckets."""
    by_key = {row.key: row.quantile for row in rows if row.quantile and not row.quantile.beyond}
    keys: Sequence[str] = [key for key in ("ttft", "itl") if key in by_key] or ("e2e",)
    labels = {
        f"{key}_{QUANTILE}": describe_seconds(by_key[key].high) for key in keys if key in by_key
    }
    try:
        parse_promise(labels)
    except PromiseError:  # without a bound, or longer than a promise may be
        return {}
    return labels


def _server(series: set[str]) -> str | None:
    """Return the preset of the only kind of server that writes these series; None if unknown."""
    kinds = {
        name
        for name, preset in PRESETS.items()
        if preset.server is not None
        and preset.server.names
        and any(series_name.startswith(preset.server.names) for series_name in series)
    }
    return kinds.pop() if len(kinds) == 1 else None


def _latency_line(row: RecordedLatency, least: int) -> str:
    values = _values(row.key, row.whole.count)
    if row.quantile is None:
        return f"{row.key}: {values} are too few for a {QUANTILE} (values.min_requests is {least})"
    quantile, worst = _quantile(row.quantile), row.worst
    text = f"the recorded replicas kept {row.key}_{QUANTILE} {quantile}, of {values}"
    if worst is None:
        return text
    badly = _quantile(worst.quantile)
    if badly == quantile:
        return f"{text}, also in the worst {_MINUTES} min"
    return (
        f"{text}; in the worst {_MINUTES} min, from {_minute(worst.start)} UTC, {badly}, of "
        f"{_values(row.key, worst.values)}"
    )


def _quantile(quantile: Quantile) -> str:
    """Return a quantile, and how precisely the buckets show it."""
    low, high = describe_seconds(quantile.low), describe_seconds(quantile.high)
    if quantile.beyond:
        return f"above {low}, the last bound of the histogram"
    value = describe_seconds(float(f"{quantile.value:.3g}"))
    return value if low == high else f"{value} (between {low} and {high})"


def _values(key: str, amount: float) -> str:
    """Return how many values a histogram counted."""
    if LATENCIES[key] is Latency.OUTPUT_TOKEN:
        return f"{amount:.0f} {_TOKENS}"
    return count(round(amount), "request")


def promise_lines(answer: PromiseAnswer, allowed: float) -> Iterator[str]:
    """Yield what the recording says of the stated promise.

    Args:
        allowed: seconds a day that the load may be above the capacity.
    """
    if answer.stated is None:
        return
    for row in answer.missed:
        if row.values:
            yield _missed_line(row)
    yield from _capacity_lines(answer, describe_promise(answer.stated.bounds))
    if answer.study is None or answer.run is None:
        yield f"no recommendation: {answer.doubt}"
        return
    yield from _outcome_lines(answer, answer.study, answer.run, allowed)
    yield (
        "this is an estimate: the recorded load, as a share of the capacity, is divided among the "
        "replicas of the replay; how late a request would have been with them is not simulated"
    )


def _capacity_lines(answer: PromiseAnswer, promise: str) -> Iterator[str]:
    for gpu, capacity in sorted((answer.capacities or {}).items()):
        where = f"a pod on {gpu}" if gpu else "a pod"
        if capacity is None and answer.run is not None:
            yield f"{where}: too little was seen for a capacity, so the cautious rule stands for it"
        if capacity is None:
            continue
        basis = "where it was seen to break"
        if not capacity.seen:
            basis = "an estimate: no load was seen to break it"
        elif capacity.load < answer.lowest.get(gpu, 0.0):
            basis = "an estimate: every load that was seen broke it"
        yield (
            f"{where} can take {decimal(capacity.load, 1)} requests that run or wait at {promise}, "
            f"{basis} ({count(round(capacity.requests), 'request')})"
        )


def _outcome_lines(
    answer: PromiseAnswer, study: Study, run: VariantRun, allowed: float
) -> Iterator[str]:
    was, made = study.recorded, run.outcome
    if study.gpus:
        hours, then = _hours(was.gpu_seconds), _hours(made.gpu_seconds)
        yield (
            f"{hours} GPU-hours were recorded, with a load above the capacity for {age(was.over)}; "
            f"on the promise, they would have been {then}, and {age(made.over)}"
        )
        if answer.kept and made.gpu_seconds > (1 + _UNSAVED) * was.gpu_seconds:
            yield (
                "the recorded replicas kept the promise with fewer GPU-hours: the others are room "
                "for the minutes in which a replica starts"
            )
    else:
        yield "GPU-hours are not known: no pod of the recording requests a GPU"
    low, high = study.spec.max_replicas, run.variant.spec.max_replicas
    if high > low:
        yield (
            f"with maxReplicas {low}, the load would be above the capacity for longer than "
            f"{age(allowed)} a day, so it is {high} here"
        )
    if a_day(run, made.over) > allowed and high == made.highest:
        yield f"maxReplicas {made.highest} is too low for the load"
    if has_unknown_demand(run):
        yield f"the load is unknown for {age(made.unknown)}, in which no pod had a value"
    if made.seconds < SHORTEST:
        yield f"the recording has {age(made.seconds)}: the peak of a day may be missing"


def _missed_line(row: MissedBound) -> str:
    key = row.bound.key.partition("_")[0]
    least = "" if row.exact else "at least "
    why = "" if row.exact else "; the histogram has no bound there"
    return (
        f"{row.bound}: {least}{percent(100 * row.share)} of {_values(key, row.values)} were later, "
        f"and {percent(100 * row.bound.tolerance)} may be{why}"
    )


def others_line(spec: HpaSpec) -> Iterator[str]:
    """Yield what becomes of an HPA's metrics if a promise takes their place."""
    gone = [metric.name for metric in spec.metrics if metric.kind == "Pods"]
    kept = [f"{metric.kind} {metric.name}" for metric in spec.metrics if metric.kind != "Pods"]
    if len(gone) > 1:
        yield f"the promise takes the place of {join_names(gone)}"
    if kept:
        yield f"{join_names(kept)} stays in the manifest, and is not replayed"


def _hours(gpu_seconds: float) -> str:
    return decimal(gpu_seconds / 3600, 1)


def _minute(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def promise_json(answer: PromiseAnswer) -> Json:
    """Return the same for programs. Latencies are in seconds."""
    item: Json = {"latencies": [_latency_json(row) for row in answer.served.latencies()]}
    if answer.stated is None:
        return item
    item["promise"] = dict(answer.stated.labels)
    item["missed"] = [
        {
            "bound": row.bound.key,
            "seconds": row.bound.seconds,
            "late": row.late,
            "values": row.values,
            "share": row.share,
            "tolerance": round(row.bound.tolerance, 3),
            "exact": row.exact,
        }
        for row in answer.missed
    ]
    item["capacities"] = [
        {
            "gpu": gpu,
            "load": capacity.load if capacity else None,
            "requests": capacity.requests if capacity else None,
            "seenToBreak": capacity.seen if capacity else None,
        }
        for gpu, capacity in sorted((answer.capacities or {}).items())
    ]
    item["doubt"] = answer.doubt
    if answer.study is not None and answer.run is not None:
        outcomes = {"recorded": answer.study.recorded, "promised": answer.run.outcome}
        for name, outcome in outcomes.items():
            item[name] = {
                "gpuHours": outcome.gpu_seconds / 3600 if answer.study.gpus else None,
                "overCapacitySeconds": outcome.over,
                "unknownSeconds": outcome.unknown,
                "changes": outcome.changes,
                "lowestReplicas": outcome.lowest,
                "highestReplicas": outcome.highest,
            }
    return item


def _latency_json(row: RecordedLatency) -> Json:
    worst = None
    if row.worst is not None:
        start = datetime.fromtimestamp(row.worst.start, UTC).isoformat().replace("+00:00", "Z")
        worst = {
            "start": start,
            "seconds": SPAN,
            "values": row.worst.values,
            **_quantile_json(row.worst.quantile),
        }
    return {
        "latency": row.key,
        "share": SHARE,
        "values": row.whole.count,
        **_quantile_json(row.quantile),
        "worst": worst,
    }


def _quantile_json(quantile: Quantile | None) -> Json:
    if quantile is None:
        return {"value": None, "low": None, "high": None}
    high = None if quantile.beyond else quantile.high
    return {"value": quantile.value, "low": quantile.low, "high": high}
