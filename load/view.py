"""What a full list of the view API costs: as kubectl reads it, in pages, as a table and as JSON.

The scenario runs ``python -m load.view --pods 10000`` in a process of its own: the providers of
``serve`` over a store that holds a full window of every pod.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass

import msgspec

from adapter.config.settings import Settings
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.store.snapshot import Snapshot
from adapter.server.serve import garbage
from adapter.server.serve.providers import build_view
from apiservice.runtime.steps import WaitingSteps
from apiservice.view.endpoint import render_page
from apiservice.view.negotiation import negotiate
from apiservice.view.options import TableOptions, list_options
from apiservice.view.presentation import presentation
from apiservice.view.resource import ServedResource, ViewGroup
from apiservice.view.selection import KeyLists, select
from load.drive import split_cores
from load.fleet import nodes
from load.page import GPUS_PER_NODE
from load.pipeline import EPOCH, INTERVAL, SCRAPES, Fleet
from load.process import ROOT, on_cores
from load.report import figure
from load.table import Goal, Run, Table

PODS = 10_000
PAGE = 500
"""Objects of one page, as kubectl asks for them."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
JSON = "application/json"
MOST_CPU = 1.0
LONGEST = 0.010


class Cost(msgspec.Struct):
    """One resource in one form."""

    plural: str
    form: str
    objects: int
    pages: int
    bytes: int
    cpu: float
    """Seconds of CPU."""
    step: float
    """Seconds of CPU of the longest step."""


def view(run: Run) -> Table:
    """Each resource, as a table and as JSON."""
    pods = PODS // 20 if run.quick else PODS
    core, _ = split_cores()
    done = subprocess.run(
        on_cores([sys.executable, "-m", "load.view", "--pods", str(pods)], core),
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"load.view failed: {done.stderr.strip()[-500:]}")
    return table(msgspec.json.decode(done.stdout, type=list[Cost]), pods)


def table(costs: list[Cost], pods: int) -> Table:
    """A row for each list."""
    cpu = max(cost.cpu for cost in costs if cost.form == TABLE)
    step = max(cost.step for cost in costs)
    note = (
        f"{pods:,} pods with a GPU each on {len(nodes(pods)):,} nodes, pages of {PAGE} objects, "
        "nothing cached. CPU of the lists without HTTP and TLS, which {pages} requests use. The "
        "longest step is the CPU time between two points at which other requests can be answered."
    ).format(pages=max(cost.pages for cost in costs))
    return Table(
        ("list", "form", "objects", "pages", "MB", "CPU s", "longest step ms"),
        tuple(
            (
                cost.plural,
                "Table" if cost.form == TABLE else "JSON",
                f"{cost.objects:,}",
                str(cost.pages),
                figure(cost.bytes / 1e6),
                figure(cost.cpu),
                figure(cost.step * 1e3),
            )
            for cost in costs
        ),
        (
            Goal("a full table below 1 s of CPU", f"{cpu:.2f} s", cpu < MOST_CPU),
            Goal("no step above 10 ms", f"{step * 1e3:.1f} ms", step <= LONGEST),
        ),
        (note,),
    )


@dataclass
class Values:
    """The values of a store that is not scraped any more."""

    snapshot: Snapshot


def measure(pods: int) -> list[Cost]:
    """Read each full list once."""
    filled = Fleet(pods // GPUS_PER_NODE)
    for scrape in range(SCRAPES):
        filled.scrape(EPOCH + scrape * INTERVAL)
    now = float(EPOCH + (SCRAPES - 1) * INTERVAL + 1)
    objects = ObjectLookup(filled.index, Services(), Nodes(), hpas=Hpas())
    built = build_view(Settings(), Values(filled.store.snapshot), objects, None)
    assert built is not None
    group = built.group
    garbage.take_over()
    return [_read(group, served, form, now) for served in group.views for form in (TABLE, JSON)]


def _read(group: ViewGroup, served: ServedResource, form: str, now: float) -> Cost:
    cost = Cost(served.resource.plural, form, 0, 0, 0, 0.0, 0.0)
    lists, token = KeyLists(), ""
    while not cost.pages or token:
        body = _time_steps(_page(group, served, lists, form, token, now), cost)
        answer = msgspec.json.decode(body)
        cost.pages += 1
        cost.objects += len(answer["rows" if form == TABLE else "items"])
        cost.bytes += len(body)
        token = answer["metadata"].get("continue", "")
    return cost


def _page(
    group: ViewGroup, served: ServedResource, lists: KeyLists, form: str, token: str, now: float
) -> WaitingSteps[bytes]:
    options = list_options(served.resource, None, {"limit": str(PAGE), "continue": token})
    keys = yield from lists.keys(served, None, options, now)
    selection = yield from select(served, keys, options)
    presented = presentation(group, served, negotiate(form.encode()), TableOptions(), now)
    return (yield from render_page(served, None, options, selection, presented, now))


def _time_steps(work: WaitingSteps[bytes], cost: Cost) -> bytes:
    while True:
        begin, body = time.thread_time(), None
        try:
            next(work)
        except StopIteration as end:
            body = end.value
        took = time.thread_time() - begin
        cost.cpu += took
        cost.step = max(cost.step, took)
        if body is not None:
            return bytes(body)


def main() -> None:
    """Measure in this process; the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    print(msgspec.json.encode(measure(parser.parse_args().pods)).decode())


if __name__ == "__main__":
    main()
