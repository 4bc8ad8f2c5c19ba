"""Start of ``serve`` in a large cluster, and a restart of its API server."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import yaml

from load.drive import Measured, drive, idle_shares, split_cores
from load.fleet import SERVICE_SIZE, WORKLOAD_SIZE
from load.hpas import SYNC, as_hpas
from load.keda import IN_FLIGHT, PACE
from load.pki import Pki, issue
from load.plan import Calls
from load.process import PYTHON, Child, run_child, wait_until
from load.report import figure
from load.servers import (
    Exporters,
    Server,
    fleet,
    free_port,
    serve_cluster,
    standalone_sections,
    target,
)
from load.table import Goal, Run, Table
from load.view import TABLE

SIZES = ((100, 1_000), (1_000, 10_000), (10_000, 50_000), (40_000, 150_000))
"""GPU pods, and all pods of the cluster."""
INTERVAL = 5.0
RATE = 20
"""Pods that are replaced, and GPU pods that are updated, in a second: 60 events."""
_WITHIN = 30.0
_SLICE = 0.01
_P99 = 20.0
"""Milliseconds."""
_ADAPTER = "adapter"
_CPU = 0.6
_MEMORY = 500e6
_PLOT = Path(__file__).with_name("start.png")
_PAGE_SIZE = 500
_OBJECTS = 1_500
_GPU_PODS = "/apis/view.gpu-metrics-adapter.io/v1alpha1/gpupods"


class Started(NamedTuple):
    """One size's figures; seconds and bytes."""

    gpu_pods: int
    pods: int
    ready: float
    """From the start of the process until ``/readyz`` answered 200."""
    complete: float
    """From the start of the process until every GPU pod had a value."""
    peak: int
    settled: int
    share: float
    """Of a core, with events and scrapes, without requests."""
    relisted: float
    """From the restart until every pod had been listed again."""
    busiest: int
    """The most requests in one second after the restart."""
    peak_after: int
    metrics: float
    """Seconds of one request for ``/metrics``."""
    hpas: Measured
    """With an HPA on every pod, each of 100 pods."""
    polled: Measured
    """While 1,500 ScaledObjects poll at KEDA's defaults, without HPAs."""
    listed: float
    """Seconds until `kubectl get gpupods -A` would have all pages of the table."""
    listed_pages: int
    lag_at_start: float
    """Upper bound of the event loop's delay until every GPU pod had a value."""
    lag: tuple[float, float]
    """The same afterwards: of 99 % of the measurements, and of all."""


class StandIn(NamedTuple):
    """A running stand-in for the API server."""

    child: Child
    url: str
    pki: Pki

    def control(self, words: str) -> dict[str, Any]:
        """Ask the stand-in itself."""
        with httpx.Client(verify=self.pki.client_context()) as client:
            answer = client.get(f"{self.url}/control/{words}")
        answer.raise_for_status()
        reply: dict[str, Any] = answer.json()
        return reply

    def lists(self) -> int:
        """Requests for a page of the list of pods."""
        counts = self.control("count")["counts"]
        every: int = counts.get("GET /api/v1/pods", 0) - counts.get("WATCH /api/v1/pods", 0)
        return every


def start(run: Run) -> Table:
    """Each size in processes of its own, over simulated exporters."""
    sizes = SIZES[:2] if run.quick else SIZES
    measured = [_measure(run, *size) for size in sizes]
    if not run.quick:
        draw(measured, _PLOT)
    return table(measured)


@contextmanager
def stand_in(
    pki: Pki,
    gpu_pods: int,
    pods: int,
    folder: Path,
    cores: Sequence[int] | None,
    *more: str,
) -> Iterator[StandIn]:
    """The stand-in with more arguments, once it listens."""
    ready = folder / f"apiserver-{pods}.port"
    ready.unlink(missing_ok=True)
    command = [PYTHON, "-m", "load.apiserver", "--pods", str(pods), "--gpu-pods", str(gpu_pods)]
    command += [*more, "--cert", str(pki.cert), "--key", str(pki.key), "--ready", str(ready)]
    with run_child("apiserver", command, folder, cores=cores) as child:
        wait_until(child, "ready", ready.exists)
        yield StandIn(child, f"https://localhost:{ready.read_text()}", pki)


def kubeconfig(api: StandIn, folder: Path) -> Path:
    """A kubeconfig for the stand-in."""
    cluster = {"server": api.url, "certificate-authority": str(api.pki.ca)}
    user = {"client-certificate": str(api.pki.client_cert), "client-key": str(api.pki.client_key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    file = folder / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def _measure(run: Run, gpu_pods: int, pods: int) -> Started:
    core, others = split_cores()
    pki = issue(run.folder)
    with (
        stand_in(pki, gpu_pods, pods, run.folder, others) as api,
        fleet(gpu_pods, run.folder, others) as exporters,
    ):
        begin = time.monotonic()
        port = free_port()
        listener = {"enabled": True, "host": "127.0.0.1", "port": port}
        with serve_cluster(
            pki,
            exporters,
            run.folder,
            kubeconfig(api, run.folder),
            interval=INTERVAL,
            cores=core,
            changes=standalone_sections(pki) | {"keda": listener},
        ) as server:
            objects = min(gpu_pods // WORKLOAD_SIZE, _OBJECTS)
            seconds = 1 if run.quick else 10
            calls = Calls(port, objects, IN_FLIGHT, seconds, 0.5, rate=PACE * objects)
            return _observe(run, begin, api, exporters, server, pods, calls, others)


def _observe(
    run: Run,
    begin: float,
    api: StandIn,
    exporters: Exporters,
    server: Server,
    pods: int,
    calls: Calls,
    cores: Sequence[int] | None,
) -> Started:
    child, last = server.child, exporters.pods // SERVICE_SIZE - 1
    with server.client() as client:
        wait_until(child, "ready", lambda: client.get("/readyz").status_code == 200)
        ready = time.monotonic() - begin
        wait_until(
            child, "every value", lambda: _values(client, range(last + 1)) == exporters.pods, 240
        )
        complete = time.monotonic() - begin
        peak = child.usage().peak
        begun = client.get("/metrics").text
        api.control(f"rate/{RATE}")
        share = idle_shares([child], (1 if run.quick else 8) * INTERVAL)[child.name]
        settled = child.usage().rss
        hpas = drive(as_hpas(server, last + 1, 1 if run.quick else 3), [child], cores=cores)
        polled = drive(calls, [child], cores=cores)
        asked_at = time.monotonic()
        view_pages = _list(client)
        viewed = time.monotonic() - asked_at
        api.control("rate/0")
        listed, since = api.lists(), time.monotonic()
        api.control("forget")
        pages = -(-pods // _PAGE_SIZE)
        wait_until(child, "listed again", lambda: api.lists() >= listed + pages, 240)
        relisted = time.monotonic() - since
        time.sleep(1)
        asked_at = time.monotonic()
        text = client.get("/metrics").text
        took = time.monotonic() - asked_at
    return Started(
        gpu_pods=exporters.pods,
        pods=pods,
        ready=ready,
        complete=complete,
        peak=peak,
        settled=settled,
        share=share,
        relisted=relisted,
        busiest=api.control("count")["busiest"],
        peak_after=child.usage().peak,
        metrics=took,
        hpas=hpas,
        polled=polled,
        listed=viewed,
        listed_pages=view_pages,
        lag_at_start=_lag(_delays(begun))[1],
        lag=_lag(_delays(text) - _delays(begun)),
    )


def _values(client: httpx.Client, services: range) -> int:
    """Values of all pods, asked for by service as HPAs do; those before the first gap."""
    total = 0
    for service in reversed(services):
        answer = client.get(target(service))
        items = len(answer.json()["items"]) if answer.status_code == 200 else 0
        total += items
        if items < SERVICE_SIZE:
            break
    return total


def _list(client: httpx.Client) -> int:
    """Read all pages of the table of GPU pods as kubectl does; returns their number."""
    pages, token = 0, ""
    while pages == 0 or token:
        parameters = {"limit": _PAGE_SIZE} | ({"continue": token} if token else {})
        answer = client.get(_GPU_PODS, params=parameters, headers={"Accept": TABLE})
        token = answer.raise_for_status().json()["metadata"].get("continue", "")
        pages += 1
    return pages


def _delays(text: str) -> Counter[float]:
    """Bound -> delays of the event loop up to it, since the start."""
    rows = re.findall(
        r'^gma_event_loop_lag_seconds_bucket{le="([^"]+)"} (\S+)$', text, re.MULTILINE
    )
    return Counter({float(bound): int(float(count)) for bound, count in rows})


def _lag(counts: Counter[float]) -> tuple[float, float]:
    """Upper bounds of the buckets that hold 99 % of the measurements, and all."""
    total = max(counts.values())
    rows = sorted(counts.items())
    most = next(bound for bound, count in rows if count >= 0.99 * total)
    return most, next(bound for bound, count in rows if count >= total)


def draw(measured: list[Started], path: Path) -> None:
    """Write CPU, memory and the time to every value over the size as a PNG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - its import takes half a second

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    pods = [case.gpu_pods for case in measured]
    rows = (
        ("CPU, % of a core", [case.share * 100 for case in measured], 100 * _CPU),
        ("resident memory, MB", [case.settled / 1e6 for case in measured], _MEMORY / 1e6),
        ("every value after, s", [case.complete for case in measured], _WITHIN),
    )
    for axes, (label, values, goal) in zip(figure.subplots(1, len(rows)), rows, strict=True):
        axes.plot(pods, values, marker="o")
        axes.axhline(goal, linestyle="--", linewidth=1, color="gray")
        axes.set_xlabel("GPU pods; dashed: goal at 40,000")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def table(measured: list[Started]) -> Table:
    """A row per size; the goals are judged at the largest."""
    largest = measured[-1]
    return Table(
        (
            "GPU pods",
            "all pods",
            "ready s",
            "every value s",
            "peak MB",
            "RSS MB",
            "CPU of one core",
            "with HPAs",
            "with KEDA",
            "listed again s",
            "requests/s at most",
            "peak MB after",
            "p99 ms",
            "/metrics ms",
            "KEDA p99 ms",
            "gpupods s",
            "loop delay ms, start",
            "later, 99 %",
            "later, all",
        ),
        tuple(
            (
                f"{case.gpu_pods:,}",
                f"{case.pods:,}",
                figure(case.ready),
                figure(case.complete),
                figure(case.peak / 1e6),
                figure(case.settled / 1e6),
                f"{case.share:.1%}",
                f"{case.hpas.busy[_ADAPTER]:.1%}",
                f"{case.polled.busy[_ADAPTER]:.1%}",
                figure(case.relisted),
                f"{case.busiest}",
                figure(case.peak_after / 1e6),
                figure(case.hpas.p99),
                figure(case.metrics * 1e3),
                figure(case.polled.p99),
                f"{figure(case.listed)} ({case.listed_pages} pages)",
                *(f"< {figure(bound * 1e3)}" for bound in (case.lag_at_start, *case.lag)),
            )
            for case in measured
        ),
        (
            Goal(
                f"every value within {_WITHIN:.0f} s of the start at {largest.gpu_pods:,} GPU pods",
                f"{largest.complete:.0f} s",
                largest.complete < _WITHIN,
            ),
            Goal(
                f"without requests under {_CPU:.0%} of a core, and {_MEMORY / 1e6:.0f} MB there",
                f"{largest.share:.0%}, {largest.settled / 1e6:.0f} MB, at the peak "
                f"{largest.peak_after / 1e6:.0f} MB",
                largest.share < _CPU and largest.peak_after < _MEMORY,
            ),
            Goal(
                "p99 of an HPA's request under 20 ms there",
                f"{figure(largest.hpas.p99)} ms",
                largest.hpas.p99 < _P99,
            ),
            Goal(
                "the event loop is never delayed above 10 ms",
                f"at the start below {largest.lag_at_start * 1e3:.0f} ms, later below "
                f"{largest.lag[1] * 1e3:.0f} ms, 99 % below {largest.lag[0] * 1e3:.0f} ms",
                max(largest.lag_at_start, largest.lag[1]) <= _SLICE,
            ),
        ),
        (
            f"The API server is a stand-in (`load/apiserver.py`) with {RATE * 3} events a second.",
            (
                "*Listed again*: every watch ended with 410, as after a restart of an API server "
                "that lost its versions. *Requests/s at most* counts the requests from then on."
            ),
            (
                f"*With HPAs*: an HPA on every pod, each of {SERVICE_SIZE} pods, asks every "
                f"{SYNC:.0f} s; *p99* is that of these requests. "
                f"*KEDA*: {_OBJECTS:,} ScaledObjects at most, each of two pods of its own, call "
                f"GetMetrics {PACE * 60:.0f} times a minute. *gpupods*: all pages of the table, "
                "as `kubectl get gpupods -A` reads them. *Loop delay* is measured 10 times "
                "a second by `serve` itself, in time, not in CPU; *start* ends with every value."
            ),
        ),
    )
