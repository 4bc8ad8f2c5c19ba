"""KEDA's GetMetrics beside an empty handler of the same server, and HTTP while KEDA polls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from load.drive import Measured, drive, drive_beside, middle, plan, split_cores
from load.fleet import SERVICE_SIZE, WORKLOAD_SIZE, nodes
from load.pki import issue
from load.plan import Calls
from load.process import PYTHON, run_child, wait_until
from load.report import figure
from load.servers import Server, answers, fleet, free_port, is_listening, serve, target
from load.serving import full_core
from load.table import Goal, Run, Table

OBJECTS = (1, 100, 1_500)
QUICK = (1, 10, 100)
IN_FLIGHT = 8
"""Calls under way at once, where more than one ScaledObject asks."""
PACE = 18 / 60
"""Calls a second of one ScaledObject at KEDA's defaults (wire contract, section 9)."""
_NAMES = {"adapter": "serve", "empty": "same server, empty handler"}


class Beside(NamedTuple):
    """The custom metrics API with and without KEDA."""

    quiet: Measured
    polled: Measured


def keda(run: Run) -> Table:
    """Both servers, each alone on its core, driven in turn; then HTTP beside the polls."""
    seconds, rounds, counts = (0.5, 1, QUICK) if run.quick else (2.0, 7, OBJECTS)
    pods = counts[-1] * WORKLOAD_SIZE  # each ScaledObject has pods of its own
    core, others = split_cores()
    pki = issue(run.folder)
    ports = {name: free_port() for name in _NAMES}
    listener = {"enabled": True, "host": "127.0.0.1", "port": ports["adapter"]}
    with ExitStack() as stack:
        exporters = stack.enter_context(fleet(pods, run.folder, others))
        ours = stack.enter_context(
            serve(pki, exporters, run.folder, cores=core, changes={"keda": listener})
        )
        wait_until(ours.child, "a value of every pod", lambda: _has_every_value(ours, pods))
        command = [PYTHON, "-m", "load.emptyscaler", "--port", str(ports["empty"])]
        empty = stack.enter_context(run_child("empty", command, run.folder, cores=core))
        wait_until(empty, "port", lambda: is_listening(ports["empty"]))
        children = {"adapter": ours.child, "empty": empty}
        measured: dict[tuple[str, int], list[Measured]] = {}
        for _ in range(rounds):
            for objects in counts:
                for name, port in ports.items():
                    calls = Calls(port, objects, min(objects, IN_FLIGHT), seconds, 0.5)
                    result = drive(calls, [children[name]], cores=others)
                    measured.setdefault((name, objects), []).append(result)
        paced = Calls(
            ports["adapter"], counts[-1], IN_FLIGHT, seconds + 4, 0.5, rate=PACE * counts[-1]
        )
        http = plan(pki, ours.port, target(), connections=1, seconds=seconds)
        quiet, polled = [], []
        for _ in range(rounds):
            quiet.append(drive(http, [ours.child], cores=others))
            with drive_beside(paced, cores=others):
                polled.append(drive(http, [ours.child], cores=others))
    results = {key: middle(runs) for key, runs in measured.items()}
    return table(results, Beside(middle(quiet), middle(polled)), rounds, core is not None)


def _has_every_value(server: Server, pods: int) -> bool:
    """Every pod has a value: a ScaledObject with a pod that has none gets an error."""
    services = range(pods // SERVICE_SIZE)
    return all(answers(server, target(service), SERVICE_SIZE) for service in services)


def table(
    results: Mapping[tuple[str, int], Measured], http: Beside, rounds: int, pinned: bool
) -> Table:
    """Rows per server and number of ScaledObjects, then HTTP, and the two goals."""
    counts = sorted({objects for _, objects in results})
    polled = f"{PACE * counts[-1]:.0f} times a second"
    rows = [
        (
            f"GetMetrics, {title}",
            f"{objects:,}",
            *_figures(results[name, objects], name),
        )
        for objects in counts
        for name, title in _NAMES.items()
    ]
    rows += [
        ("HTTP pods/*, serve", "0", *_figures(http.quiet, "adapter")),
        (
            f"HTTP pods/*, serve, polled {polled}",
            f"{counts[-1]:,}",
            *_figures(http.polled, "adapter"),
        ),
    ]
    shares = [
        full_core(results["adapter", n], "adapter") / full_core(results["empty", n], "empty")
        for n in counts
    ]
    slower = http.polled.p99 / http.quiet.p99
    return Table(
        (
            "request",
            "ScaledObjects",
            "answers/s",
            "p50 ms",
            "p99 ms",
            "core busy",
            "CPU ms/answer",
        ),
        tuple(rows),
        (
            Goal(
                "at least 80 % of an empty handler",
                " / ".join(f"{share:.0%}" for share in shares)
                + " at "
                + " / ".join(f"{n:,}" for n in counts),
                min(shares) >= 0.8,
            ),
            Goal("HTTP p99 under twice its p99 without polls", f"{slower:.2f}x", slower < 2),
        ),
        (_note(rounds, counts[-1] * WORKLOAD_SIZE, pinned),),
    )


def _figures(result: Measured, name: str) -> tuple[str, ...]:
    return (
        figure(result.rate),
        figure(result.p50),
        figure(result.p99),
        f"{result.busy[name]:.0%}",
        figure(result.cpu[name]),
    )


def _note(rounds: int, pods: int, pinned: bool) -> str:
    where = "pinned to one core, the clients to another" if pinned else "not pinned to cores"
    return (
        f"Median of {rounds} interleaved rounds; the servers are {where}. Every ScaledObject "
        f"requests the sum over its own {WORKLOAD_SIZE} pods, over one connection with {IN_FLIGHT} "
        "calls in progress (one call for one ScaledObject). The first goal applies to CPU per "
        f"answer, which for serve includes scraping: {len(nodes(pods))} nodes with {pods:,} pods, "
        "a page of each every 5 s. serve computes an answer again if a page has arrived and the "
        "answer is a second old. The CPU of the last row includes that of the polls."
    )
