"""The longest steps of the event loop in a large cluster, in CPU time, and the memory of a relist.

Each piece of work of ``serve`` runs here in the steps in which the event loop runs it, and each
step is timed by itself. So the figures do not depend on what else the machine does, and a stall has
a name. The exporters' pages come in between, and the garbage collections of ``serve`` run as they
do there.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from adapter.answers.api.provider import GpuMetricsProvider
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.store.snapshot import Snapshot
from adapter.server.serve import garbage
from adapter.server.serve.garbage import resident_memory
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import EVERYTHING, parse
from apiservice.provider import GroupResource, ObjectQuery
from apiservice.runtime.steps import Steps
from apiservice.wire.metricvalues import metric_value_list
from load.clusterobjects import encoded, pod
from load.drive import split_cores
from load.fleet import NAMESPACE, SERVICE_SIZE
from load.page import GPUS_PER_NODE
from load.pipeline import EPOCH, INTERVAL, METRIC, SCRAPES, Fleet, do_nothing
from load.process import ROOT, on_cores
from load.report import figure
from load.table import Goal, Run, Table

SIZE = (40_000, 150_000)
"""GPU pods, and all pods of the cluster."""
_QUICK = (800, 3_000)
_MOST = 0.010
"""Seconds that a step may take after the start."""
_PAGE = 500
"""Pods of a page of a list."""
_EVENTS = 500
_BETWEEN = 50
"""Pages of exporters, or steps, between two looks of the garbage collector."""
_GPU_PODS = GroupResource("pods", "")

T = TypeVar("T")


class Work(NamedTuple):
    """CPU seconds of one kind of work."""

    whole: float
    """The median of the whole work."""
    longest: float
    """The longest step of all."""


class Figures(NamedTuple):
    """What a run measured."""

    gpu_pods: int
    pods: int
    work: dict[str, Work]
    pod_bytes: float
    """Resident bytes of a pod."""
    relist: float
    """Resident bytes of a pod that a list of all pods adds at its peak."""
    after: float
    """Resident bytes of a pod that are left of it."""
    full: float
    """CPU seconds of a full garbage collection."""


class Watch:
    """Times steps by kind."""

    def __init__(self) -> None:
        self._whole: dict[str, list[float]] = {}
        self._longest: dict[str, float] = {}

    def run(self, kind: str, work: Steps[T], between: Callable[[], object] = do_nothing) -> T:
        """Run work in steps, and ``between`` after each; returns the result."""
        whole = 0.0
        while True:
            begin = time.thread_time()
            try:
                next(work)
            except StopIteration as end:
                took = time.thread_time() - begin
                self._longest[kind] = max(self._longest.get(kind, 0.0), took)
                self._whole.setdefault(kind, []).append(whole + took)
                result: T = end.value
                return result
            took = time.thread_time() - begin
            whole += took
            self._longest[kind] = max(self._longest.get(kind, 0.0), took)
            between()

    def call(self, kind: str, work: Callable[[], T]) -> T:
        """Run work that is one step."""

        def once() -> Steps[T]:
            yield from ()
            return work()

        return self.run(kind, once())

    def work_by_kind(self) -> dict[str, Work]:
        """Return each kind of work."""
        return {
            kind: Work(sorted(all_of)[len(all_of) // 2], self._longest[kind])
            for kind, all_of in self._whole.items()
        }


class Cluster:
    """A store over a fleet of exporters, and the pods of a whole cluster."""

    def __init__(self, gpu_pods: int, pods: int) -> None:
        self.fleet = Fleet(gpu_pods // GPUS_PER_NODE)
        self._gpu_pods, self._pods = gpu_pods, pods
        self.index, self._decoder = self.fleet.index, PodDecoder()
        self.index.replace([])
        before = resident_memory()
        self.index.replace([item for page in self.list_pages() for item in page])
        self.pod_bytes = (resident_memory() - before) / pods
        lookup = ObjectLookup(self.index, Services(), Nodes())
        self._provider = GpuMetricsProvider(self.fleet.catalog, self, lookup)

    @property
    def snapshot(self) -> Snapshot:
        """See :class:`adapter.answers.api.provider.Values`."""
        return self.fleet.store.snapshot

    @property
    def version(self) -> int:
        """See :class:`adapter.answers.api.provider.Values`."""
        return self.fleet.store.version

    def list_pages(self) -> Iterator[list[Pod]]:
        """The pages of a list of all pods, as the reflector decodes them."""
        for first in range(0, self._pods, _PAGE):
            raw = [encoded(self.manifest(number)) for number in range(first, first + _PAGE)]
            yield [self.index.intern(self._decoder.decode(item)) for item in raw]

    def manifest(self, number: int, serial: int = 0) -> dict[str, Any]:
        """A pod as the API server writes it."""
        return pod(number, self._gpu_pods, serial)

    def decode(self, manifest: dict[str, Any]) -> Pod:
        """The pod of a watch event."""
        return self._decoder.decode(msgspec.Raw(encoded(manifest)))

    def request(self, service: int, now: float) -> Steps[bytes]:
        """An HPA's request for the pods of a service."""
        selector = parse(f"app=svc-{service:03d}")
        query = ObjectQuery(_GPU_PODS, NAMESPACE, None, METRIC, selector, EVERYTHING)
        answer = yield from self._provider.values(query, now)
        if len(answer.items) != SERVICE_SIZE:
            raise RuntimeError(f"{len(answer.items)} of {SERVICE_SIZE} pods have a value")
        return (yield from metric_value_list("v1beta2", answer.items, EVERYTHING))


def measure(gpu_pods: int, pods: int) -> Figures:
    """Fill a cluster, then time what happens in it after the start."""
    cluster, watch = Cluster(gpu_pods, pods), Watch()
    fleet = cluster.fleet
    for scrape in range(SCRAPES):
        now = EPOCH + scrape * INTERVAL
        fleet.scrape(now)
    collector = garbage.take_over()
    look = partial(watch.call, "garbage collector's look", collector.look)
    services, pages = range(gpu_pods // SERVICE_SIZE), itertools.cycle(fleet.pages)
    for kind in ("first request for a service", "cold request for 100 pods"):
        now += INTERVAL
        fleet.scrape(now, between=partial(_run_sometimes, itertools.count(), look))
        for service in services:
            fleet.take(next(pages), now + 1)  # each request has a snapshot of its own
            watch.run(kind, cluster.request(service, now + 1.0))
            if not service % 10:
                look()
    _events(cluster, watch, pods, look)
    before, peak, after = _relist(cluster, watch, look)
    full = time.thread_time()
    gc.unfreeze()
    gc.collect()
    full = time.thread_time() - full
    return Figures(
        gpu_pods,
        pods,
        watch.work_by_kind(),
        cluster.pod_bytes,
        (peak - before) / pods,
        (after - before) / pods,
        full,
    )


def _events(cluster: Cluster, watch: Watch, pods: int, look: Callable[[], object]) -> None:
    """Replace pods, and change GPU pods, as a watch reports it."""
    for number in range(_EVENTS):
        place = pods - 1 - number
        old, new = (cluster.decode(cluster.manifest(place, serial)) for serial in (0, 1))
        for event, item in ((EventType.DELETED, old), (EventType.ADDED, new)):
            changed = partial(cluster.index.apply, event, item)
            watch.call("event of a pod without a GPU", changed)
        manifest = cluster.manifest(number)
        manifest["metadata"]["annotations"] = {"prometheus.io/scrape": "true"}
        for item in (cluster.decode(manifest), cluster.decode(cluster.manifest(number))):
            changed = partial(cluster.index.apply, EventType.MODIFIED, item)
            watch.call("event of a GPU pod", changed)
        if not number % 20:
            look()


def _relist(cluster: Cluster, watch: Watch, look: Callable[[], object]) -> tuple[int, int, int]:
    """List all pods again; returns the resident bytes before, at the peak and after."""
    before = resident_memory()
    peaks = [before]

    def between() -> None:
        look()
        peaks.append(resident_memory())

    items: list[Pod] = []
    for page in cluster.list_pages():
        items += page
        between()
    work = cluster.index.replace_in_steps(items)
    watch.run(
        "list of all pods, applied", work, partial(_run_sometimes, itertools.count(), between)
    )
    del items
    return before, max(peaks), resident_memory()


def _run_sometimes(count: Iterator[int], work: Callable[[], object]) -> None:
    """Do ``work`` at one of many calls."""
    if not next(count) % _BETWEEN:
        work()


def steps(run: Run) -> Table:
    """One size, in a process of its own."""
    gpu_pods, pods = _QUICK if run.quick else SIZE
    command = [sys.executable, "-m", "load.steps", "--gpu-pods", str(gpu_pods)]
    core, _ = split_cores()
    done = subprocess.run(
        on_cores([*command, "--pods", str(pods)], core),
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"load.steps failed: {done.stderr.strip()[-500:]}")
    return table(msgspec.json.decode(done.stdout, type=Figures))


def table(figures: Figures) -> Table:
    """A row per kind of work."""
    longest = max(figures.work, key=lambda kind: figures.work[kind].longest)
    most = figures.work[longest].longest
    memory = (
        f"{figures.gpu_pods:,} GPU pods of {figures.pods:,}. A pod takes {figures.pod_bytes:.0f} "
        f"bytes of resident memory. A list of all pods adds {figures.relist:.0f} for each at its "
        f"peak, and {figures.after:.0f} are left of it."
    )
    full = (
        f"A full garbage collection takes {figure(figures.full * 1e3)} ms of CPU and is none of "
        f"these steps: `serve` makes one only after memory has grown, in a moment without "
        f"requests if one comes before memory has grown twice as much."
    )
    return Table(
        ("work", "CPU ms, median", "longest step ms"),
        tuple(
            (kind, figure(work.whole * 1e3), figure(work.longest * 1e3))
            for kind, work in figures.work.items()
        ),
        (
            Goal(
                "no step takes more than 10 ms of CPU after the start",
                f"{figure(most * 1e3)} ms: {longest}",
                most <= _MOST,
            ),
        ),
        (memory, full),
    )


def main() -> None:
    """Measure in this process; the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu-pods", type=int, default=SIZE[0])
    parser.add_argument("--pods", type=int, default=SIZE[1])
    arguments = parser.parse_args()
    print(msgspec.json.encode(measure(arguments.gpu_pods, arguments.pods)).decode())


if __name__ == "__main__":
    main()
