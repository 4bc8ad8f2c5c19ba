"""What rules cost at 1, 100 and 1,500 HPAs: ``serve`` and prometheus-adapter on one Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from load.drive import drive, plan
from load.fleet import NAMESPACE, slots
from load.hpas import SYNC, WORKERS
from load.page import UTIL
from load.peer import RULES, prometheus, prometheus_adapter
from load.plane import control_plane, pki_of, processes
from load.process import PYTHON, Observed, run_child, wait_until
from load.report import figure
from load.servers import GROUP, Server, answers, fleet, free_port
from load.table import Goal, Run, Table
from tests.e2e.controlplane import ControlPlane

PODS = 1_500
HPAS = (1, 100, 1_500)
SYNCS = 2


class Case(NamedTuple):
    """One adapter at one number of HPAs; figures of one sync."""

    name: str
    hpas: int
    rate: float
    queries: float
    adapter: float
    """CPU milliseconds, like the ones below."""
    store: float
    apiserver: float
    """kube-apiserver, which answers an access review for each name in a path."""


def rules(run: Run) -> Table:
    """Each HPA asks for a pod of its own once in a sync; both adapters run one after the other."""
    period, syncs = (3.0, 1) if run.quick else (SYNC, SYNCS)
    cases: list[Case] = []
    with (
        control_plane(run.folder) as plane,
        fleet(PODS, run.folder) as exporters,
        prometheus(exporters, run.folder) as (store, url),
    ):
        for name, adapter in (("serve", _ours), ("prometheus-adapter", _theirs)):
            with adapter(plane, url, run) as server:
                wait_until(server.child, "values", partial(answers, server, _path(0), 1), 120)
                watched = (server.child, store, processes(plane)[0])
                cases += [
                    _measure(name, server, watched, url, hpas, period, syncs) for hpas in HPAS
                ]
    return table(cases, period)


def _path(number: int) -> str:
    (slot,) = islice(slots(PODS), number, number + 1)
    return f"{GROUP}/namespaces/{NAMESPACE}/pods/{slot.name}/{UTIL}"


def _measure(
    name: str,
    server: Server,
    watched: Sequence[Observed],
    url: str,
    hpas: int,
    period: float,
    syncs: int,
) -> Case:
    """Sync some times. The CPU of what runs anyway, such as scrapes, is in the figures."""
    paths = [_path(number) for number in range(hpas)]
    load = plan(server.pki, server.port, paths[0], connections=min(hpas, WORKERS), expected=1)
    load.targets, load.once = paths, True
    before, queries_before = [child.usage().cpu for child in watched], _queries(url)
    rate = 0.0
    for _ in range(syncs):
        began = time.monotonic()
        rate = drive(load, [server.child]).rate
        time.sleep(max(0.0, period - (time.monotonic() - began)))
    used = [child.usage().cpu - was for child, was in zip(watched, before, strict=True)]
    queries = (_queries(url) - queries_before) / syncs
    return Case(name, hpas, rate, queries, *(seconds / syncs * 1e3 for seconds in used))


def _queries(url: str) -> float:
    """Queries that Prometheus has answered."""
    text = httpx.get(f"{url}/metrics", trust_env=False).text
    wanted = "prometheus_http_requests_total"
    lines = "".join(line for line in text.splitlines(keepends=True) if line.startswith(wanted))
    return sum(
        sample.value
        for family in text_string_to_metric_families(lines)
        for sample in family.samples
        if sample.labels.get("handler") == "/api/v1/query"
    )


@contextmanager
def _ours(plane: ControlPlane, url: str, run: Run) -> Iterator[Server]:
    pki, port = pki_of(plane), free_port()
    content = {
        "server": {
            "host": "127.0.0.1",
            "port": port,
            "cert_file": str(pki.cert),
            "key_file": str(pki.key),
            "drain": 0,
        },
        "keda": {"enabled": False},
        "cluster": {"kubeconfig": str(plane.kubeconfig)},
        "source": {"kind": "scrape", "scrape": {"discover": True}, "prometheus": {"url": url}},
        "rules": {"file": str(RULES)},
    }
    file = run.folder / "serve.yaml"
    file.write_text(yaml.safe_dump(content))
    command = [PYTHON, "-m", "adapter", "serve", "--config", str(file)]
    with run_child("adapter", command, run.folder) as child:
        yield Server(child, port, pki)


@contextmanager
def _theirs(plane: ControlPlane, url: str, run: Run) -> Iterator[Server]:
    with prometheus_adapter(plane, url, run.folder) as (child, port):
        yield Server(child, port, pki_of(plane))


def table(cases: Sequence[Case], period: float) -> Table:
    """A row per case; the goals compare the most HPAs with one."""
    ours = [case for case in cases if case.name == "serve"]
    few, many = ours[0], ours[-1]
    note = (
        f"Per sync of {period:.0f} s, mean of {SYNCS}. Each HPA asks for the metric of a pod of "
        "its own, as an Object metric does, so both adapters ask kube-apiserver for an access "
        "review of each name: its decisions are kept for 10 s, as in every Kubernetes server. "
        f"Prometheus has {PODS:,} series of one metric and "
        "scrapes them every 15 s; its CPU includes that. serve asks every 10 s "
        "(rules.interval), so a window may hold one query more or less. Requests/s are those "
        "of a sync whose requests follow one another over at most 5 connections. No core is "
        "pinned, and other programs used the machine. The client-side rate limit of "
        "prometheus-adapter is lifted."
    )
    return Table(
        (
            "adapter",
            "HPAs",
            "requests/s",
            "queries to Prometheus",
            "CPU ms: adapter",
            "Prometheus",
            "kube-apiserver",
        ),
        tuple(
            (
                case.name,
                f"{case.hpas:,}",
                figure(case.rate),
                figure(case.queries),
                figure(case.adapter),
                figure(case.store),
                figure(case.apiserver),
            )
            for case in cases
        ),
        (
            Goal(
                "queries at 1,500 HPAs as at one (one more in the window allowed)",
                f"{figure(many.queries)} and {figure(few.queries)}",
                abs(many.queries - few.queries) * SYNCS <= 1,
            ),
            Goal(
                "Prometheus' CPU at 1,500 HPAs within 5 % of that at one",
                f"{many.store / few.store - 1:+.0%}",
                many.store <= 1.05 * few.store,
            ),
        ),
        (note,),
    )
