"""Beside prometheus-adapter: a real API server, a real Prometheus, requests as HPAs send them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from load.drive import Measured, drive, idle_shares, plan
from load.fleet import SERVICE_SIZE, nodes
from load.hpas import SYNC, WORKERS, as_hpas
from load.page import UTIL
from load.plane import control_plane, pki_of, populate, processes
from load.process import Child, Observed, run_child, wait_until
from load.report import figure
from load.servers import (
    Exporters,
    Server,
    answers,
    fleet,
    free_port,
    is_listening,
    serve_cluster,
    target,
)
from load.table import Goal, Run, Table
from tests.e2e import programs
from tests.e2e.controlplane import ControlPlane

SIZES = (100, 1_000, 10_000)
FEWEST = 10
"""HPAs whose CPU stands out from that at rest."""
RULES = Path(__file__).with_name("prometheus-adapter.yaml")
SCRAPE_INTERVAL = 15


class Case(NamedTuple):
    """One adapter at one size, asked in one way."""

    pods: int
    hpas: int
    """Each asks for 100 pods of its own every 15 s; 0 is a closed loop that repeats one request."""
    name: str
    result: Measured
    rss: dict[str, int]


def peer(run: Run) -> Table:
    """Both adapters over the same cluster and exporters, one after the other."""
    sizes = SIZES[1:2] if run.quick else SIZES
    cases: list[Case] = []
    with control_plane(run.folder) as plane:
        have = 0
        for pods in sizes:
            populate(plane, have, pods)
            have = pods
            with fleet(pods, run.folder) as exporters:
                for name, adapter in (("serve", _ours), ("prometheus-adapter", _theirs)):
                    with adapter(plane, exporters, run.folder) as (server, others):
                        watched = [server.child, *others]
                        cases += _measure(name, server, watched, pods, run.quick)
    return table(cases)


def _measure(
    name: str, server: Server, watched: Sequence[Observed], pods: int, quick: bool
) -> Iterator[Case]:
    # The windows of the first minute fill, and the start leaves objects to collect.
    time.sleep(0 if quick else 4 * SCRAPE_INTERVAL)
    # Whole scrape intervals, so that every exporter's share of the rest is in it as often.
    at_rest = idle_shares(watched, 1.0 if quick else 4 * SCRAPE_INTERVAL)
    services = pods // SERVICE_SIZE
    loop = plan(
        server.pki,
        server.port,
        target(),
        connections=WORKERS,
        seconds=2.0 if quick else 8.0,
        warm_up=1,
    )
    hpas = as_hpas(server, services, 1 if quick else 4)
    # The accounting of CPU has steps of 10 ms: too coarse for the one request of one HPA.
    for count, load in ((0, loop), (services, hpas))[: 2 if services >= FEWEST else 1]:
        result = drive(load, watched, resting=at_rest)
        rss = {child.name: child.usage().rss for child in watched}
        yield Case(pods, count, name, result, rss)


@contextmanager
def _ours(
    plane: ControlPlane, exporters: Exporters, folder: Path
) -> Iterator[tuple[Server, list[Observed]]]:
    with serve_cluster(pki_of(plane), exporters, folder, plane.kubeconfig) as server:
        yield server, processes(plane)


@contextmanager
def _theirs(
    plane: ControlPlane, exporters: Exporters, folder: Path
) -> Iterator[tuple[Server, list[Observed]]]:
    pki = pki_of(plane)
    with (
        prometheus(exporters, folder) as (store, url),
        prometheus_adapter(plane, url, folder) as (child, port),
    ):
        server = Server(child, port, pki)
        expected = min(100, exporters.pods)
        wait_until(child, "values", lambda: answers(server, target(), expected), 120)
        yield server, [*processes(plane), store]


@contextmanager
def prometheus_adapter(plane: ControlPlane, url: str, folder: Path) -> Iterator[tuple[Child, int]]:
    """prometheus-adapter with a Prometheus, and its port."""
    pki, port = pki_of(plane), free_port()
    command = [
        str(programs.find(programs.PROMETHEUS_ADAPTER)),
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={pki.cert}",
        f"--tls-private-key-file={pki.key}",
        f"--prometheus-url={url}",
        f"--config={RULES}",
        "--metrics-relist-interval=10m",
        # At their defaults (5 a second) these alone would bound it.
        "--client-qps=10000",
        "--client-burst=10000",
        *(
            f"--{use}-kubeconfig={plane.kubeconfig}"
            for use in ("lister", "authentication", "authorization")
        ),
    ]
    with run_child("adapter", command, folder) as child:
        yield child, port


@contextmanager
def prometheus(
    exporters: Exporters, folder: Path, keep: str = UTIL
) -> Iterator[tuple[Observed, str]]:
    """A Prometheus that has scraped every exporter.

    Args:
        keep: regular expression of the series that it stores.
    """
    port = free_port()
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(scrape_config(exporters, keep)))
    command = [
        str(programs.find(programs.PROMETHEUS)),
        f"--config.file={config}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--storage.tsdb.path={folder / f'prometheus-{exporters.pods}'}",
        "--log.level=warn",
    ]
    with run_child("prometheus", command, folder) as child:
        wait_until(child, "port", lambda: is_listening(port))
        pages_before = exporters.control("count")["pages"]
        wanted = pages_before + len(nodes(exporters.pods))
        wait_until(child, "first scrape", lambda: exporters.control("count")["pages"] >= wanted)
        yield child, f"http://127.0.0.1:{port}"


def scrape_config(exporters: Exporters, keep: str) -> dict[str, object]:
    """Keeps the series that are asked for: the lightest Prometheus there can be."""
    return {
        "global": {"scrape_interval": f"{SCRAPE_INTERVAL}s"},
        "scrape_configs": [
            {
                "job_name": "dcgm-exporter",
                "honor_labels": True,
                "metric_relabel_configs": [
                    {"source_labels": ["__name__"], "regex": keep, "action": "keep"}
                ],
                "static_configs": [
                    {
                        "targets": [f"127.0.0.1:{exporters.port}"],
                        "labels": {"__metrics_path__": f"/{node}/metrics", "instance": node},
                    }
                    for node in nodes(exporters.pods)
                ],
            }
        ],
    }


def table(cases: Sequence[Case]) -> Table:
    """A row per case; the closed loop is judged at the smallest size, HPAs at the largest."""
    rows = tuple(_row(case) for case in cases)
    smallest, largest = min(case.pods for case in cases), max(case.pods for case in cases)
    loops = {case.name: case.result for case in cases if not case.hpas and case.pods == smallest}
    hpas = {case.name: case.result for case in cases if case.hpas and case.pods == largest}
    times = loops["serve"].rate / loops["prometheus-adapter"].rate
    ours, theirs = (sum(hpas[name].cpu.values()) for name in ("serve", "prometheus-adapter"))
    upstream = max(
        case.result.gross["kube-apiserver"]
        for case in cases
        if case.name == "serve" and not case.hpas
    )
    serve_cpu = hpas["serve"].cpu["adapter"]
    note = (
        "One run of each case, median latencies. No core is pinned: all processes and the client "
        "share the machine. CPU is the time beyond that at rest. Only one adapter runs at a time. "
        f"Prometheus runs only with prometheus-adapter and stores only {UTIL}, scraped every "
        f"{SCRAPE_INTERVAL} s. The client-side rate limit of prometheus-adapter (5 per second by "
        f"default) is lifted. *Closed loop*: {WORKERS} connections repeat one request, so serve "
        "repeats its answer until a page changes it. *HPAs*: each asks for 100 pods of its own "
        f"every {SYNC:.0f} s, evenly spaced, as HPAs do: all pages have changed since its last "
        "request, and the latency counts from the time at which it was due."
    )
    return Table(
        (
            "adapter",
            "pods",
            "asked by",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "CPU ms/request: adapter",
            "kube-apiserver",
            "etcd",
            "Prometheus",
            "RSS MB: adapter",
            "Prometheus",
        ),
        rows,
        (
            Goal(
                f"closed loop: at least 100 times at {smallest:,} pods",
                f"{times:,.0f}x",
                times >= 100,
            ),
            Goal(
                f"HPAs: at most 2 ms of serve's CPU a request at {largest:,} pods",
                f"{figure(serve_cpu)} ms",
                serve_cpu <= 2,
            ),
            Goal(
                f"HPAs: at most a tenth of prometheus-adapter's CPU at {largest:,} pods, "
                "all processes",
                f"{figure(ours)} and {figure(theirs)} ms a request",
                ours <= theirs / 10,
            ),
            Goal(
                "closed loop: no cost for the API server per request",
                f"at most {figure(upstream)} ms of its CPU per request",
                upstream < 0.05,
            ),
        ),
        (note,),
    )


def _row(case: Case) -> tuple[str, ...]:
    result = case.result
    cpu = [
        result.cost(name) if name in result.cpu else "-"
        for name in ("adapter", "kube-apiserver", "etcd", "prometheus")
    ]
    rss = [
        figure(case.rss[name] / 1e6) if name in case.rss else "-"
        for name in ("adapter", "prometheus")
    ]
    speed = (figure(result.rate), figure(result.p50), figure(result.p99))
    asker = f"{case.hpas:,} HPAs" if case.hpas else "closed loop"
    return (case.name, f"{case.pods:,}", asker, *speed, *cpu, *rss)
