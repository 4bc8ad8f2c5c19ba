"""What the latencies of inference servers cost: at rest, and while somebody asks for them.

The scenario runs ``python -m load.latencies --servers 500 --ask NAME`` in a process of its own for
each row: that many servers with vLLM's page, in one namespace, read every 5 s by the clock of the
pages until the window of a latency is full.
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
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import psutil

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.servermeasures import GATEWAY
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.store import Store
from apiservice.labels.selector import EVERYTHING
from load.drive import split_cores
from load.process import ROOT, on_cores
from load.report import figure
from load.table import Run, Table

SERVERS: Final = 500
FULL: Final = 13
"""Pages until the window of a latency is full."""
PAGES: Final = FULL + 3
INTERVAL: Final = 5
EPOCH: Final = 1_800_000_000
NAMESPACE: Final = "ml"
RUNNING: Final = "inference_requests_running"
LATENCY: Final = "inference_time_to_first_token_seconds_p90"
ASKED: Final = {
    "nobody asks": (RUNNING,),
    "one latency": (RUNNING, LATENCY),
    "all latencies, tokens and requests": (
        RUNNING,
        *(name for name in Catalog().on_demand if not name.startswith(GATEWAY)),
    ),
}
"""A row of the table -> the metrics that somebody asks for."""
_HISTOGRAMS: Final = (
    *("time_to_first_token", "inter_token_latency", "e2e_request_latency", "request_queue_time"),
    *("request_prefill_time", "request_decode_time", "request_inference_time"),
    *("request_prompt_tokens", "request_generation_tokens", "iteration_tokens_total"),
)
_BOUNDS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
"""Of vLLM's time to first token (``vllm/v1/metrics/loggers.py``)."""
_LABELS: Final = 'engine="0",model_name="opal-7b"'


class Cost(NamedTuple):
    """Of one server, medians over all pages with a full window."""

    samples: int
    """Of a page."""
    kept: int
    """Of those, how many are read."""
    page: float
    """Microseconds of CPU from a page to the store."""
    answer: float
    """Microseconds of CPU for the newest value of one metric, the dearest of those asked for."""
    resident: float
    """Bytes."""


def page(server: int, number: int) -> bytes:
    """Return a server's page; every number differs from that of the page before."""
    hits = server % 7 + number * 5
    lines = [
        f"vllm:num_requests_running{{{_LABELS}}} {hits % 40}.0",
        f"vllm:num_requests_waiting{{{_LABELS}}} {hits % 5}.0",
        f"vllm:kv_cache_usage_perc{{{_LABELS}}} 0.{10 + hits % 80}",
        f"vllm:generation_tokens_total{{{_LABELS}}} {hits * 371}.0",
        f"vllm:prompt_tokens_total{{{_LABELS}}} {hits * 1371}.0",
        f'vllm:request_success_total{{{_LABELS},finished_reason="stop"}} {hits}.0',
    ]
    for name in _HISTOGRAMS:
        series = f"vllm:{name}" + ("" if "tokens" in name else "_seconds")
        lines.append(f"# TYPE {series} histogram")
        for below, bound in enumerate((*_BOUNDS, "+Inf"), 1):
            lines.append(
                f'{series}_bucket{{engine="0",le="{bound}",model_name="opal-7b"}} {hits * below}.0'
            )
        lines.append(f"{series}_count{{{_LABELS}}} {hits * (len(_BOUNDS) + 1)}.0")
        lines.append(f"{series}_sum{{{_LABELS}}} {hits * 3}.5")
    return ("\n".join(lines) + "\n").encode()


def measure(servers: int, metrics: Sequence[str]) -> Cost:
    """Read the pages of all servers until the window is full, while the metrics are asked for."""
    decoder, index = PodDecoder(), PodIndex()
    pods = [decoder.decode(msgspec.json.encode(_pod(number))) for number in range(servers)]
    index.replace(pods)
    store = Store(Catalog(), TelemetryOptions(), index, Nodes())
    memos = [LabelMemo() for _ in pods]
    for metric in metrics:
        store.snapshot.pod(pods[0], metric, EVERYTHING, float(EPOCH))
    wanted = store.demand.of(NAMESPACE)
    before, kept_samples = _resident(), 0
    spent, answers = [], []
    for number in range(PAGES):
        now = float(EPOCH + number * INTERVAL)
        for server, memo in enumerate(memos):
            text = page(server, number)
            begin = time.thread_time()
            read = parse(text, time=now, memo=memo, wanted=wanted)
            result = ScrapeResult(
                f"http://server-{server}:8000/metrics",
                *(None, read.samples, now, read.rejects),
                pod=(NAMESPACE, f"llm-{server}"),
                serves=True,
            )
            store.ingest(result)
            spent.append(time.thread_time() - begin)
            kept_samples = len(read.samples)
        snapshot = store.snapshot
        for metric in metrics if number >= FULL else ():
            begin = time.thread_time()
            for pod in pods:
                snapshot.pod(pod, metric, EVERYTHING, now + 1)
            answers.append((time.thread_time() - begin) / servers)
    return Cost(
        samples=sum(not line.startswith(b"#") for line in page(0, 0).splitlines()),
        kept=kept_samples,
        page=statistics.median(spent[servers * FULL :]) * 1e6,
        answer=max(answers[-len(metrics) :]) * 1e6,
        resident=(_resident() - before) / servers,
    )


def _pod(number: int) -> dict[str, object]:
    name = f"llm-{number}"
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"namespace": NAMESPACE, "name": name, "uid": name, "labels": {"app": "llm"}},
        "spec": {"nodeName": f"node-{number // 8}", "containers": [{"name": "server"}]},
        "status": {"phase": "Running", "conditions": [ready]},
    }


def _resident() -> int:
    gc.collect()
    return int(psutil.Process(os.getpid()).memory_info().rss)


def latencies(run: Run) -> Table:
    """Servers whose latencies nobody asks for, and some that are asked."""
    servers = SERVERS // 10 if run.quick else SERVERS
    core, _ = split_cores()
    rows = []
    for name in ASKED:
        command = [sys.executable, "-m", "load.latencies"]
        command += ["--servers", str(servers), "--ask", name]
        done = subprocess.run(
            on_cores(command, core), check=False, cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"load.latencies failed: {done.stderr.strip()[-500:]}")
        cost = Cost(**json.loads(done.stdout))
        rows.append(
            (
                name,
                f"{cost.kept} of {cost.samples}",
                figure(cost.page),
                figure(cost.answer),
                figure(cost.resident / 1e3),
            )
        )
    work = (
        f"{servers:,} servers with vLLM's page, of which {len(_HISTOGRAMS)} histograms have "
        f"{len(_BOUNDS) + 1} buckets each, every {INTERVAL} s. The memory holds the pages of a "
        "minute, without their text."
    )
    return Table(
        ("asked for", "samples read", "µs per page", "µs per answer", "kB per server"),
        tuple(rows),
        notes=(work,),
    )


def main() -> None:
    """Measure in this process; the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--ask", choices=ASKED, default="nobody asks")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.servers, ASKED[arguments.ask])._asdict()))


if __name__ == "__main__":
    main()
