"""The stand-in for kube-apiserver compared with the real one: what ``serve`` pays for each."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from load.clusterobjects import node, pod
from load.drive import idle_shares
from load.fleet import NAMESPACE
from load.page import GPUS_PER_NODE
from load.pki import Pki, issue
from load.plane import control_plane
from load.process import wait_until
from load.report import figure
from load.servers import fleet, serve_cluster, standalone_sections
from load.start import INTERVAL, SIZES, kubeconfig, stand_in
from load.table import Goal, Run, Table
from tests.e2e.controlplane import ControlPlane

PODS = SIZES[2][0]
_WRITERS = 8
_GIVEN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences")
"""Metadata that the API server sets itself, or checks against other objects."""


class Paid(NamedTuple):
    """What ``serve`` used until it was ready, and after."""

    server: str
    ready: float
    cpu: float
    """Seconds."""
    peak: int
    rss: int
    resting: float
    """Share of a core in the ten seconds after, with scrapes and without events."""


def standin(run: Run) -> Table:
    """The same pods and nodes on both servers, one after the other."""
    pods = 200 if run.quick else PODS
    paid = []
    pki = issue(run.folder)
    with stand_in(pki, pods, pods, run.folder, None) as api:
        paid.append(_pay(run, "stand-in", pods, pki, kubeconfig(api, run.folder)))
    with control_plane(run.folder) as plane:
        _fill(plane, pods)
        paid.append(_pay(run, "kube-apiserver", pods, pki, plane.kubeconfig))
    return table(pods, paid)


def _pay(run: Run, name: str, pods: int, pki: Pki, config: Path) -> Paid:
    with ExitStack() as stack:
        exporters = stack.enter_context(fleet(pods, run.folder))
        begin = time.monotonic()
        server = stack.enter_context(
            serve_cluster(
                pki,
                exporters,
                run.folder,
                config,
                interval=INTERVAL,
                changes=standalone_sections(pki),
            )
        )
        client = stack.enter_context(server.client())
        wait_until(server.child, "ready", lambda: client.get("/readyz").status_code == 200)
        ready = time.monotonic() - begin
        used = server.child.usage()
        resting = idle_shares([server.child], 2 if run.quick else 10)[server.child.name]
        rss = server.child.usage().rss
    return Paid(name, ready, used.cpu, used.peak, rss, resting)


def _fill(plane: ControlPlane, pods: int) -> None:
    with ThreadPoolExecutor(_WRITERS) as writers:
        nodes = range(-(-pods // GPUS_PER_NODE))
        list(writers.map(lambda index: plane.admin.create(_creatable_object(node(index))), nodes))
        list(writers.map(lambda index: _pod(plane, index, pods), range(pods)))


def _pod(plane: ControlPlane, index: int, pods: int) -> None:
    made = _creatable_object(pod(index, pods))
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    status = made.pop("status")
    plane.admin.request("POST", path, made)
    plane.admin.patch(f"{path}/{made['metadata']['name']}/status", {"status": status})


def _creatable_object(made: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in made["metadata"].items() if key not in _GIVEN}
    return made | {"metadata": metadata}


def table(pods: int, paid: list[Paid]) -> Table:
    """A row per server."""
    ours, real = paid
    ratio = ours.cpu / real.cpu
    return Table(
        (
            "API server",
            "ready s",
            "CPU s until ready",
            "peak MB",
            "RSS MB",
            "CPU of one core, next 10 s",
        ),
        tuple(
            (
                row.server,
                figure(row.ready),
                figure(row.cpu),
                figure(row.peak / 1e6),
                figure(row.rss / 1e6),
                f"{row.resting:.1%}",
            )
            for row in paid
        ),
        (
            Goal(
                f"within a quarter of each other at {pods:,} pods",
                f"CPU {ratio:.2f}, peak memory {ours.peak / real.peak:.2f}",
                0.75 < ratio < 1.25 and 0.75 < ours.peak / real.peak < 1.25,
            ),
        ),
        ("`serve` starts on each, with the same pods and nodes, and scrapes their exporters.",),
    )
