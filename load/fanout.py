"""Requests that ``serve`` sends upstream while 1, 100 and 1,500 HPAs sync."""

from __future__ import annotations

import time
from typing import NamedTuple

from load.drive import drive, plan
from load.hpas import SYNC, WORKERS
from load.plane import control_plane, pki_of, populate, requests
from load.report import figure
from load.servers import Exporters, Server, fleet, serve_cluster, target
from load.table import Goal, Run, Table
from tests.e2e.controlplane import ControlPlane

PODS = 100
HPAS = (0, 1, 100, 1_500)
_REVIEWS = "subjectaccessreviews"
_ASKED = ("pods", "services", "nodes", "configmaps", "tokenreviews", _REVIEWS)
"""The resources that ``serve`` may ask for: the rest is the API server's own housekeeping."""


class Sync(NamedTuple):
    """What went upstream in one sync period."""

    hpas: int
    pages: float
    requests: float
    """To the API server, for what ``serve`` may ask for."""
    reviews: float
    """Access reviews among them."""
    housekeeping: float
    """Other requests that the API server counted."""
    seconds: float
    """How long the HPAs' own requests took together."""


def fanout(run: Run) -> Table:
    """Each number of HPAs asks once, with a selector of its own, within one sync period."""
    period = 5.0 if run.quick else SYNC
    with (
        control_plane(run.folder) as plane,
        fleet(PODS, run.folder) as exporters,
    ):
        populate(plane, 0, PODS)
        with serve_cluster(pki_of(plane), exporters, run.folder, plane.kubeconfig) as server:
            syncs = [_sync(plane, exporters, server, hpas, period) for hpas in HPAS]
    return table(syncs, period)


def _sync(
    plane: ControlPlane, exporters: Exporters, server: Server, hpas: int, period: float
) -> Sync:
    begin = time.monotonic()
    before, pages = requests(plane), exporters.control("count")["pages"]
    if hpas:
        load = plan(server.pki, server.port, target(), connections=min(hpas, WORKERS))
        load.targets = [f"{target()},hpa!%3D{number}" for number in range(hpas)]
        load.once = True
        drive(load, [server.child])
    took = time.monotonic() - begin
    time.sleep(max(0.0, period - took))
    after, pages_after = requests(plane), exporters.control("count")["pages"]
    grown = {name: count - before.get(name, 0.0) for name, count in after.items()}
    api_requests = sum(grown.get(name, 0.0) for name in _ASKED)
    return Sync(
        hpas=hpas,
        pages=pages_after - pages,
        requests=api_requests,
        reviews=grown.get(_REVIEWS, 0.0),
        housekeeping=sum(grown.values()) - api_requests,
        seconds=took,
    )


def table(syncs: list[Sync], period: float) -> Table:
    """A row per number of HPAs; the first, without any, is the base."""
    base, most = syncs[0], syncs[-1]
    spread = max(sync.pages for sync in syncs) - min(sync.pages for sync in syncs)
    flat = spread <= len(range(0, PODS, 8)) and most.requests - base.requests <= WORKERS
    note = (
        f"Counted over {period:.0f} s at the exporters and by kube-apiserver's own "
        "apiserver_request_total. `serve` scrapes each of 13 exporters every 5 s, independent of "
        "requests. It caches a decision on access for 10 s, so a sync causes two reviews at most. "
        "Each HPA has a selector of its own."
    )
    return Table(
        (
            "HPAs",
            "pages scraped",
            "API server requests",
            "of these, access reviews",
            "API server's housekeeping",
            "duration s",
        ),
        tuple(
            (
                f"{sync.hpas:,}",
                f"{sync.pages:.0f}",
                f"{sync.requests:.0f}",
                f"{sync.reviews:.0f}",
                f"{sync.housekeeping:.0f}",
                figure(sync.seconds),
            )
            for sync in syncs
        ),
        (
            Goal(
                "upstream requests do not grow with the HPAs",
                f"{most.requests:.0f} to the API server in a sync of {most.hpas:,} HPAs, "
                f"{base.requests:.0f} in a sync of none",
                flat,
            ),
        ),
        (note,),
    )
