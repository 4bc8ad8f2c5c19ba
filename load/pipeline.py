"""What a row costs on its whole way, from an exporter's page to a pod's value.

The scenario runs ``python -m load.pipeline --exporters 1000`` in a process of its own: that
many 8-GPU nodes with one pod per GPU, scraped every 5 s by the clock of the pages until the
window is full, then measured over one more scrape of all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import psutil

from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.store import Store
from apiservice.labels.selector import EVERYTHING
from load.drive import split_cores
from load.fleet import pages, pod_list
from load.page import FIELDS, GPUS_PER_NODE, Page
from load.process import ROOT, on_cores
from load.report import figure
from load.table import Run, Table

EXPORTERS = 1_000
SCRAPES = 16
"""Until the window is full, and the power of idle devices is known: a collect interval later."""
INTERVAL = 5
SMALLER = 10
"""Times smaller is the fleet by which the cross-checks are measured."""
METRIC = "gpu_utilization"
EPOCH = 1_800_000_000


class Cost(NamedTuple):
    """Microseconds of CPU per page, medians over all exporters, and resident bytes."""

    exporters: int
    rows: int
    """Of a page."""
    kept: int
    """Of those, how many are of a field in the catalogue."""
    parse: float
    ingest: float
    checks: float
    """Of ``ingest``, what goes with ``values.cross_checks: false``: by two smaller fleets."""
    read: float
    """All pods of one page asked for once."""
    again: float
    """The same answers asked for again before the next page."""
    empty: int
    """With the pods known and nothing scraped."""
    full: int


class Times(NamedTuple):
    """CPU seconds per page of one round over all exporters."""

    parse: list[float]
    ingest: list[float]
    kept: int


def do_nothing() -> None:
    """Do nothing."""


class Fleet:
    """All exporters, their pods and the store that their pages go into."""

    def __init__(self, exporters: int, *, checks: bool = True) -> None:
        count = exporters * GPUS_PER_NODE
        decoder, self.index = PodDecoder(), PodIndex()
        self.by_node: dict[str, list[Pod]] = {}
        pods = [decoder.decode(msgspec.json.encode(item)) for item in pod_list(count)["items"]]
        self.index.replace(pods)
        for pod in pods:
            self.by_node.setdefault(pod.node, []).append(pod)
        self.catalog = Catalog()
        self.store = Store(self.catalog, TelemetryOptions(cross_checks=checks), self.index, Nodes())
        self.pages: dict[str, Page] = pages(count)
        self._memos = {node: LabelMemo() for node in self.pages}

    def scrape(self, second: int, between: Callable[[], object] = do_nothing) -> Times:
        """Every exporter's page once, and ``between`` after each."""
        times = Times([], [], 0)
        for node in self.pages:
            parsing, ingesting, kept_samples = self.take(node, second)
            times.parse.append(parsing)
            times.ingest.append(ingesting)
            between()
        return times._replace(kept=kept_samples)

    def take(self, node: str, second: int) -> tuple[float, float, int]:
        """One exporter's page: CPU seconds of parsing and of the store, and its kept rows."""
        text = self.pages[node].render(second)
        begin = time.thread_time()
        read = parse(text, time=float(second), memo=self._memos[node], wanted=self.catalog.series)
        middle = time.thread_time()
        result = ScrapeResult(f"http://{node}:9400/metrics", node, read.samples, float(second))
        self.store.ingest(result)
        return middle - begin, time.thread_time() - middle, len(read.samples)

    def read(self, second: int) -> list[float]:
        """CPU seconds of asking for every pod once, by node."""
        snapshot, spent = self.store.snapshot, []
        for pods in self.by_node.values():
            begin = time.thread_time()
            answers = [snapshot.pod(pod, METRIC, EVERYTHING, float(second)) for pod in pods]
            spent.append(time.thread_time() - begin)
            if not all(isinstance(answer, Reading) for answer in answers):
                raise RuntimeError(f"not every pod has a value: {answers}")
        return spent


def measure(exporters: int) -> Cost:
    """Fill a store, then time one more scrape and two rounds of questions."""
    fleet = Fleet(exporters)
    empty = _resident()
    for scrape in range(SCRAPES):
        now = EPOCH + scrape * INTERVAL
        times = fleet.scrape(now)
    first, again = fleet.read(now), fleet.read(now)
    full = _resident()
    fewer = max(1, exporters // SMALLER)
    checks = _checks(fewer)
    return Cost(
        exporters=exporters,
        rows=GPUS_PER_NODE * len(FIELDS),
        kept=times.kept,
        parse=statistics.median(times.parse) * 1e6,
        ingest=statistics.median(times.ingest) * 1e6,
        checks=checks * 1e6,
        read=statistics.median(first) * 1e6,
        again=statistics.median(again) * 1e6,
        empty=empty,
        full=full,
    )


def _checks(exporters: int) -> float:
    """CPU seconds that the cross-checks add to a page: the median difference of two fleets that
    take the same pages in by turns, once their windows are full."""
    fleets = [Fleet(exporters, checks=checks) for checks in (True, False)]
    more = []
    for scrape in range(3 * SCRAPES):
        with_checks, without = (fleet.scrape(EPOCH + scrape * INTERVAL) for fleet in fleets)
        if scrape >= SCRAPES:
            pairs = zip(with_checks.ingest, without.ingest, strict=True)
            more += [one - other for one, other in pairs]
    return statistics.median(more)


def _resident() -> int:
    gc.collect()
    return int(psutil.Process(os.getpid()).memory_info().rss)


def pipeline(run: Run) -> Table:
    """Parsing alone beside everything that follows it, per page and per row."""
    command = [sys.executable, "-m", "load.pipeline", "--exporters"]
    command.append(str(EXPORTERS // 20 if run.quick else EXPORTERS))
    core, _ = split_cores()
    done = subprocess.run(
        on_cores(command, core), check=False, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"load.pipeline failed: {done.stderr.strip()[-500:]}")
    return table(Cost(**json.loads(done.stdout)))


def table(cost: Cost) -> Table:
    """A row per stage; per row of the page, whether the catalogue knows it or not."""
    stages = (
        ("parsing alone", cost.parse),
        ("ingest: units, ranges, devices, pods, history, cross-checks", cost.ingest),
        ("of this, the cross-checks", cost.checks),
        ("a reading of every pod, first request", cost.read),
        ("parsing, ingest and readings", cost.parse + cost.ingest + cost.read),
        ("the same readings, second request", cost.again),
    )
    devices = cost.exporters * GPUS_PER_NODE
    share = (cost.parse + cost.ingest + cost.read) * 1e-6 * cost.exporters / INTERVAL
    grown = cost.full - cost.empty
    work = (
        f"{cost.exporters:,} exporters x {GPUS_PER_NODE} GPUs x {len(FIELDS)} fields: "
        f"{cost.rows} samples per page, {cost.kept} of them of fields in the catalogue. At one "
        f"scrape every {INTERVAL} s, this uses {share:.0%} of a core, without HTTP."
    )
    memory = (
        f"Memory: {cost.full / 1e6:.0f} MB resident after {SCRAPES} scrapes of every exporter "
        f"and a request for every pod. {grown / 1e6:.0f} MB of this, {grown / devices:,.0f} bytes "
        "per device, hold the scrapes, without the text of the pages."
    )
    answers = (
        f"A pod's reading costs {cost.read / GPUS_PER_NODE:.0f} µs for the first request after "
        f"a page, and {cost.again / GPUS_PER_NODE:.1f} µs for the next (docs/decisions/0001)."
    )
    return Table(
        ("stage", "µs per page", "µs per sample", "relative to parsing"),
        tuple(
            (stage, figure(micros), figure(micros / cost.rows), figure(micros / cost.parse) + "x")
            for stage, micros in stages
        ),
        notes=(work, answers, memory),
    )


def main() -> None:
    """Measure in this process; the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exporters", type=int, default=EXPORTERS)
    print(json.dumps(measure(parser.parse_args().exporters)._asdict()))


if __name__ == "__main__":
    main()
