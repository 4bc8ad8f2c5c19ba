"""Reading an exporter's page, beside prometheus_client's parser."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from adapter.pipeline.exposition.page import LabelMemo, parse
from load.fleet import pages
from load.page import FIELDS, GPUS_PER_NODE
from load.report import figure
from load.table import Goal, Run, Table

ROUNDS = 200
PEER_ROUNDS = 30


class Figure(NamedTuple):
    """One parser's speed on one page."""

    name: str
    micros: float
    megabytes_per_second: float


def parsing(run: Run) -> Table:
    """Medians over many parses of one page in one process."""
    del run
    (page,) = pages(GPUS_PER_NODE).values()
    body = page.render(0)
    measured = measure(body)
    peer = measured[0].megabytes_per_second
    rows = tuple(
        (
            item.name,
            figure(item.micros),
            figure(item.megabytes_per_second),
            figure(item.megabytes_per_second / peer) + "x",
        )
        for item in measured
    )
    ratio = measured[-1].megabytes_per_second / peer
    return Table(
        ("parser", "µs per page", "MB/s", "ratio"),
        rows,
        (Goal("at least 20 times prometheus_client.parser", f"{ratio:.1f}x", ratio >= 20),),
        (f"The page: {len(body) / 1000:.0f} kB, {GPUS_PER_NODE} GPUs x {len(FIELDS)} fields.",),
    )


def measure(body: bytes) -> list[Figure]:
    """The peer's speed, then ours without and with what an earlier page taught."""
    text, memo = body.decode(), LabelMemo()
    runs: tuple[tuple[str, Callable[[], object], int], ...] = (
        (
            "prometheus_client.parser",
            lambda: [list(family.samples) for family in text_string_to_metric_families(text)],
            PEER_ROUNDS,
        ),
        (
            "adapter.pipeline.exposition.page, an exporter's first page",
            lambda: parse(body, time=1.0),
            ROUNDS,
        ),
        (
            "adapter.pipeline.exposition.page, every later page",
            lambda: parse(body, time=1.0, memo=memo),
            ROUNDS,
        ),
    )
    timed = [(name, _time_calls(work, rounds)) for name, work, rounds in runs]
    return [Figure(name, took * 1e6, len(body) / took / 1e6) for name, took in timed]


def _time_calls(work: Callable[[], object], rounds: int) -> float:
    """The median CPU seconds of one call."""
    samples = []
    for _ in range(rounds):
        begin = time.thread_time()
        work()
        samples.append(time.thread_time() - begin)
    return statistics.median(samples)
