"""Beside prometheus-adapter: a real API server, a real Prometheus, the HPA's own request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from load.drive import Measured, drive, idle, plan
from load.fleet import nodes
from load.page import UTIL
from load.plane import control_plane, pki_of, populate, processes
from load.process import Child, Observed, started, until
from load.report import figure
from load.servers import (
    Exporters,
    Server,
    answers,
    fleet,
    free_port,
    listening,
    serve_cluster,
    target,
)
from load.table import Goal, Run, Table
from tests.e2e import programs
from tests.e2e.controlplane import ControlPlane

SIZES = (100, 1_000, 10_000)
CONNECTIONS = (1, 5)
RULES = Path(__file__).with_name("prometheus-adapter.yaml")
SCRAPE_INTERVAL = 15


class Case(NamedTuple):
    """One adapter at one size and number of connections."""

    pods: int
    connections: int
    name: str
    result: Measured
    rss: dict[str, int]


def peer(run: Run) -> Table:
    """Both adapters over the same cluster and exporters, one after the other."""
    sizes = SIZES[:1] if run.quick else SIZES
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
    seconds = 2.0 if quick else 8.0
    # A whole scrape interval, so that every exporter's share of the rest is in it once.
    rest = idle(watched, 1.0 if quick else SCRAPE_INTERVAL)
    for connections in CONNECTIONS:
        load = plan(
            server.pki, server.port, target(), connections=connections, seconds=seconds, warm_up=1
        )
        result = drive(load, watched, resting=rest)
        rss = {each.name: each.usage().rss for each in watched}
        yield Case(pods, connections, name, result, rss)


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
        until(child, "values", lambda: answers(server, target(), expected), 120)
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
    with started("adapter", command, folder) as child:
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
    with started("prometheus", command, folder) as child:
        until(child, "port", lambda: listening(port))
        asked = exporters.control("count")["pages"]
        wanted = asked + len(nodes(exporters.pods))
        until(child, "first scrape", lambda: exporters.control("count")["pages"] >= wanted)
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
    """A row per case; the goals are judged at 100 pods and 5 connections."""
    rows = tuple(_row(case) for case in cases)
    judged = {
        case.name: case.result
        for case in cases
        if case.pods == SIZES[0] and case.connections == CONNECTIONS[-1]
    }
    ours, theirs = judged["serve"], judged["prometheus-adapter"]
    times = ours.rate / theirs.rate
    upstream = max(case.result.gross["kube-apiserver"] for case in cases if case.name == "serve")
    note = (
        "Median latencies of one run of each case. No core is pinned: all processes and the "
        "client share the machine. CPU is the time beyond that at rest. Only one adapter runs at a "
        f"time. Prometheus runs only with prometheus-adapter and stores only {UTIL}, scraped every "
        f"{SCRAPE_INTERVAL} s. The client-side rate limit of prometheus-adapter (5 per second by "
        "default) is lifted."
    )
    return Table(
        (
            "adapter",
            "pods",
            "connections",
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
            Goal("at least 100 times at 100 pods", f"{times:,.0f}x", times >= 100),
            Goal(
                "no cost for the API server per request",
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
    return (case.name, f"{case.pods:,}", str(case.connections), *speed, *cpu, *rss)
