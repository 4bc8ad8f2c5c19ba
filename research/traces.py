"""Recorded load as GPU work by the minute. The files are read where they lie, never copied.

Work is in percent of one GPU: 700 is what ten pods do at a target of 70 %.
"""

from __future__ import annotations

import csv
import gzip
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from adapter.tools.replay.nodeworld import NodePhysics

STEP: Final = 60
"""Seconds of one entry of a trace."""
TARGET: Final = 70
"""Percent: what the HorizontalPodAutoscaler keeps each pod at."""
SERVICES: Final = 4
"""Into how many services the pods of one cluster are dealt."""
WHOLE: Final = "genai"
"""The trace of all of them together."""
DAYS: Final = "lora"
"""The trace of more than a day."""
BUSIER: Final = 10
"""By how much the rate of its requests is multiplied: the record is of a small service."""
FIT_DAYS: Final = range(4, 8)
"""Its days, from the day on which the daily pattern begins, on which anything may be chosen."""
JUDGE_DAYS: Final = range(8, 12)
"""Its days that decide."""
DAY: Final = 86400
LORA: Final = "gentd26_lora_requests_11d.csv.gz"
"""The requests of the trace of more than a day."""
QUARTER: Final = 900
"""Seconds over which the rate of requests is averaged."""
_SEED: Final = 20241115
DEFAULT = Path(__file__).parents[1] / "../shared/data"


class Part(NamedTuple):
    """Minutes of a trace that are judged together."""

    name: str
    tuned_on: bool
    """Something was chosen by its results."""
    first: int
    end: int
    """Indexes of the first minute and of the one after the last."""


class Trace(NamedTuple):
    """One service's recorded load."""

    name: str
    work: tuple[float, ...]
    """Percent of one GPU, one entry a minute."""
    tuned_on: bool
    """The forecast was tuned on it; the others were held out."""
    begin: float
    """Epoch seconds of the first entry, as the trace has it."""
    split: tuple[Part, ...] = ()
    """Empty for a trace that is judged as a whole."""
    physics: NodePhysics = NodePhysics()
    """Of its nodes."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is judged. Policies run through the whole trace in any case."""
        return self.split or (Part(self.name, self.tuned_on, 0, len(self.work)),)


class TracesMissingError(RuntimeError):
    """The recorded traces are not on this machine."""


def folder() -> Path:
    """Where the traces lie; raises :class:`TracesMissingError`."""
    path = Path(os.environ.get("GPU_METRICS_SHARED_DATA", DEFAULT)) / "traces"
    if not path.is_dir():
        raise TracesMissingError(
            f"no recorded traces at {path}: set GPU_METRICS_SHARED_DATA to their parent folder"
        )
    return path


def load_traces(source: Path) -> tuple[Trace, ...]:
    """Every trace of the folder.

    The GenAI cluster's pods are taken together (``genai``) and dealt into services
    (``genai-1`` …). Requests have no unit of GPU work: those of the same cluster are scaled
    to its GPUs' mean, and Azure's, which name no GPU at all, to the same. The requests of
    ``lora`` keep a GPU busy for a recorded time, so only their rate is scaled.
    """
    begin, pods = _duty_cycles(source / "gentd26_pod_gpu_duty_cycle.csv.gz")
    whole = _total(pods)
    mean = fmean(whole)
    dealt = [_total(pods[k::SERVICES]) for k in range(SERVICES)]
    traces = [Trace(WHOLE, whole, False, begin)]
    traces += [
        Trace(f"{WHOLE}-{k + 1}", work, k < SERVICES // 2, begin) for k, work in enumerate(dealt)
    ]
    start, qps = _requests_per_second(source / "gentd26_qps.csv.gz")
    traces.append(Trace("genai-qps", _scale_work(qps, mean), False, start))
    for kind in ("code", "conv"):
        start, requests = _arrivals(source / f"azure_llm_2023_{kind}.csv.gz")
        traces.append(Trace(f"azure-{kind}", _scale_work(requests, mean), kind == "conv", start))
    traces.append(many_days(source / LORA))
    return tuple(traces)


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with gzip.open(path, "rt", newline="") as stream:
        yield from csv.DictReader(stream)


def _duty_cycles(path: Path) -> tuple[float, list[tuple[float, ...]]]:
    """When it begins, and each pod's work by the minute, pods in the order of their ids."""
    pods: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in _rows(path):
        pods[row["container_ip"]].append((float(row["timestamp_anon"]), float(row["value"])))
    begin = min(time for samples in pods.values() for time, _ in samples)
    end = max(time for samples in pods.values() for time, _ in samples)
    return begin, [_by_minute(sorted(pods[ip]), begin, end) for ip in sorted(pods)]


def _by_minute(
    samples: Sequence[tuple[float, float]], begin: float, end: float
) -> tuple[float, ...]:
    """The last sample of the two minutes before each minute; a pod without one is not there."""
    work = []
    following = 0
    for minute in range(int((end - begin) // STEP) + 1):
        now = begin + minute * STEP
        while following < len(samples) and samples[following][0] <= now:
            following += 1
        last = samples[following - 1] if following else None
        recent = last is not None and last[0] > now - 2 * STEP
        work.append(last[1] if recent and last is not None else 0.0)
    return tuple(work)


def _requests_per_second(path: Path) -> tuple[float, tuple[float, ...]]:
    """Requests that pods generated for, a minute's mean of all pods together."""
    totals: dict[float, float] = defaultdict(float)
    for row in _rows(path):
        if row["container_ip"]:
            totals[float(row["timestamp_anon"])] += float(row["value"])
    samples = sorted(totals.items())
    return samples[0][0], _by_minute(samples, samples[0][0], samples[-1][0])


def _arrivals(path: Path) -> tuple[float, tuple[float, ...]]:
    """Requests of each whole minute."""
    times = [datetime.fromisoformat(row["TIMESTAMP"][:26] + "+00:00") for row in _rows(path)]
    begin = times[0].timestamp()
    counts = [0.0] * (int((times[-1].timestamp() - begin) // STEP) + 1)
    for time in times:
        counts[int((time.timestamp() - begin) // STEP)] += 1
    return begin, tuple(counts[:-1])


def many_days(path: Path, busier: int = BUSIER, seed: int = _SEED) -> Trace:
    """A service with so many times the recorded rate of requests.

    The rate is the mean of a quarter of an hour. Arrivals are drawn within the quarter, and each
    keeps one GPU busy for the time of one of the quarter's recorded requests.
    """
    drawn = requests(path, busier, seed)
    begin, minutes = drawn.begin, drawn.minutes
    work = [0.0] * minutes
    for start, end in drawn.spans:
        _add_busy(work, start, end)
    parts = [
        _days(f"{DAYS} {name}", fit, days, begin, minutes)
        for name, fit, days in (("fit", True, FIT_DAYS), ("judge", False, JUDGE_DAYS))
    ]
    return Trace(DAYS, tuple(work), False, begin, tuple(parts))


class Requests(NamedTuple):
    """Drawn requests, and what they were drawn from."""

    begin: float
    """Epoch seconds."""
    minutes: int
    busier: int
    seconds: Mapping[int, Sequence[float]]
    """Quarter of an hour since the beginning -> durations of its recorded requests."""
    spans: Sequence[tuple[float, float]]
    """Beginning and end of each request, in seconds since the beginning."""


def requests(path: Path, busier: int = BUSIER, seed: int = _SEED) -> Requests:
    """Draw the requests of :func:`many_days`."""
    quarters: dict[int, list[float]] = defaultdict(list)
    for row in _rows(path):
        time = datetime.fromisoformat(row["gmt_create"]).replace(tzinfo=UTC).timestamp()
        quarters[int(time) // QUARTER].append(float(row["exec_time_seconds"]))
    first, last = min(quarters), max(quarters)
    draw = random.Random(seed)
    spans = []
    for quarter, seconds in sorted(quarters.items()):
        start = (quarter - first) * float(QUARTER)
        time = start + draw.expovariate(busier * len(seconds) / QUARTER)
        while time < start + QUARTER:
            spans.append((time, time + draw.choice(seconds)))
            time += draw.expovariate(busier * len(seconds) / QUARTER)
    return Requests(
        float(first * QUARTER),
        (last + 1 - first) * QUARTER // STEP,
        busier,
        {quarter - first: seconds for quarter, seconds in quarters.items()},
        spans,
    )


def _add_busy(work: list[float], start: float, end: float) -> None:
    """Add one GPU, fully busy, to the minutes of a request."""
    for minute in range(int(start // STEP), min(len(work), int(end // STEP) + 1)):
        seconds = min(end, (minute + 1) * STEP) - max(start, minute * STEP)
        work[minute] += 100 * seconds / STEP


def _days(name: str, tuned_on: bool, days: range, begin: float, minutes: int) -> Part:
    """Days of a trace, counted from the one in which it begins."""
    midnight = begin // DAY * DAY
    first, end = (int(midnight + day * DAY - begin) // STEP for day in (days.start, days.stop))
    return Part(name, tuned_on, min(first, minutes), min(end, minutes))


def _total(pods: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*pods, strict=True)))


def _scale_work(work: Sequence[float], mean: float) -> tuple[float, ...]:
    factor = mean / fmean(work)
    return tuple(load * factor for load in work)
