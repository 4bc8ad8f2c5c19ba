"""GET of ``pods/*`` for 100 pods over TLS on one core, beside two yardsticks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from load.drive import Measured, drive, middle, plan, split_cores
from load.pki import issue
from load.report import figure
from load.servers import fleet, naive, serve, static, target
from load.table import Goal, Run, Table

PODS = 100
CONNECTIONS = (1, 8)
_NAMES = {"adapter": "serve", "static": "same server, static bytes", "naive": "FastAPI + pydantic"}


def serving(run: Run) -> Table:
    """Three servers, each alone on its core, driven in turn; medians over the rounds."""
    seconds, rounds = (0.5, 1) if run.quick else (1.5, 9)
    core, others = split_cores()
    pki = issue(run.folder)
    with ExitStack() as stack:
        exporters = stack.enter_context(fleet(PODS, run.folder, others))
        ours = stack.enter_context(serve(pki, exporters, run.folder, cores=core))
        with ours.client() as client:
            body = client.get(target()).content
        servers = {
            "adapter": ours,
            "static": stack.enter_context(static(pki, body, run.folder, core)),
            "naive": stack.enter_context(naive(pki, PODS, run.folder, core)),
        }
        measured: dict[tuple[str, int], list[Measured]] = {}
        for _ in range(rounds):
            for connections in CONNECTIONS:
                for name, server in servers.items():
                    load = plan(
                        pki, server.port, target(), connections=connections, seconds=seconds
                    )
                    result = drive(load, [server.child], cores=others)
                    measured.setdefault((name, connections), []).append(result)
    return table({key: middle(runs) for key, runs in measured.items()}, rounds, core is not None)


def full_core(result: Measured, name: str) -> float:
    """Requests per second of CPU time: the rate at which one core is full."""
    return 1e3 / result.cpu[name]


def table(results: Mapping[tuple[str, int], Measured], rounds: int, pinned: bool) -> Table:
    """Rows per server and number of connections, and the two goals."""
    rows = []
    for connections in CONNECTIONS:
        for name, title in _NAMES.items():
            result = results[name, connections]
            rows.append(
                (
                    title,
                    str(connections),
                    figure(result.rate),
                    figure(result.p50),
                    figure(result.p99),
                    f"{result.busy[name]:.0%}",
                    figure(result.cpu[name]),
                    figure(full_core(result, name)),
                )
            )
    most = CONNECTIONS[-1]
    ours, bytes_only, plain = (full_core(results[name, most], name) for name in _NAMES)
    where = "pinned to one core, the client to another" if pinned else "not pinned to cores"
    note = (
        f"Median of {rounds} interleaved rounds; the server is {where}. "
        f"Body: {results['adapter', most].body:,} bytes. Goals apply to {most} connections "
        "and to the requests per second that a full core would answer (1,000 / CPU ms): on a "
        "shared machine, requests/s depend on other programs too."
    )
    return Table(
        (
            "server",
            "connections",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "core busy",
            "CPU ms/request",
            "requests/s of a full core",
        ),
        tuple(rows),
        (
            Goal(
                "at least 80 % of static bytes",
                f"{ours / bytes_only:.0%}",
                ours >= 0.8 * bytes_only,
            ),
            Goal("at least 3 times FastAPI + pydantic", f"{ours / plain:.1f}x", ours >= 3 * plain),
        ),
        (note,),
    )
