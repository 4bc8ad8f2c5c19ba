"""What the telemetry of a fleet costs: memory per device, microseconds per scrape and read.

Run ``python load/telemetry.py --exporters 1250``: that many 8-GPU nodes, one pod per GPU,
25 fields, one scrape every 5 s until the window is full.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adapter.batch import Batch
from adapter.catalog import Catalog
from adapter.cluster.pod import Pod, PodRef
from adapter.exposition import LabelMemo, parse
from adapter.reading import Reading
from adapter.store import Store
from adapter.telemetryoptions import TelemetryOptions
from apiservice.selector import EVERYTHING
from load.parse import page

GPUS = 8
SCRAPES = 8
INTERVAL = 5.0
METRIC = "gpu_utilization"


class Fleet:
    """Pods by name; implements the store's port."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = {pod.ref: pod for pod in pods}

    def get(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get(PodRef(namespace, name))

    def on_node(self, node: str) -> Sequence[Pod]:
        return [pod for pod in self if pod.node == node]

    def changes(self, node: str) -> int:
        return 0

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())


def pod(exporter: int, gpu: int) -> Pod:
    return Pod(
        ref=PodRef("ml", f"llm-{exporter:05}-x{gpu:04}"),
        uid=f"u-{exporter}-{gpu}",
        node=f"gpu-node-{exporter}",
        ip="",
        phase="Running",
        ready=True,
        deleting=False,
        labels={},
        annotations={},
        owner=None,
        containers=("server",),
        gpus={"nvidia.com/gpu": 1},
        claims=False,
        ports=(),
    )


def body(exporter: int) -> bytes:
    """The page of one node: its own UUIDs, host name and pods."""
    text = page(GPUS).replace(b"GPU-ee71aa82", f"GPU-{exporter:08x}".encode())
    text = text.replace(b"gpu-node-17", f"gpu-node-{exporter}".encode())
    return text.replace(b"llm-7d9c5b8f6-", f"llm-{exporter:05}-".encode())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--exporters", type=int, default=1250)
    count = arguments.parse_args().exporters
    pods = [pod(exporter, gpu) for exporter in range(count) for gpu in range(GPUS)]
    fleet, catalog = Fleet(pods), Catalog()
    store = Store(catalog, TelemetryOptions(), fleet)
    gc.collect()
    tracemalloc.start()
    memos = [LabelMemo() for _ in range(count)]
    parsing, ingesting = [], []
    for scrape in range(SCRAPES):
        if scrape == SCRAPES - 1:
            full = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        for exporter, memo in enumerate(memos):
            text, now = body(exporter), 1000.0 + INTERVAL * scrape
            begin = time.thread_time()
            read = parse(text, time=now, memo=memo, wanted=catalog.series)
            middle = time.thread_time()
            batch = Batch(f"http://{exporter}", f"gpu-node-{exporter}", read.rows, now)
            store.ingest(batch)
            parsing.append(middle - begin)
            ingesting.append(time.thread_time() - middle)
    last = count * (SCRAPES - 1)
    rows = len(read.rows)
    print(f"{count * GPUS} devices, {rows} rows a page")
    print(f"memory          {full / count / GPUS:9.0f} bytes per device, {full / 1e6:.1f} MB")
    print(f"parse           {statistics.median(parsing[last:]) * 1e6:9.1f} us a page")
    print(f"ingest          {statistics.median(ingesting[last:]) * 1e6:9.1f} us a page")
    print(f"ingest, longest {max(ingesting[last:]) * 1e6:9.1f} us")
    begin = time.thread_time()
    snapshot = store.snapshot
    print(f"snapshot        {(time.thread_time() - begin) * 1e6:9.1f} us")
    for title in ("first", "again"):
        begin = time.thread_time()
        found = [snapshot.pod(one, METRIC, EVERYTHING, now) for one in pods]
        each = (time.thread_time() - begin) / len(pods)
        assert all(isinstance(reading, Reading) for reading in found)
        print(f"read, {title:<9} {each * 1e6:9.2f} us a pod")


if __name__ == "__main__":
    main()
