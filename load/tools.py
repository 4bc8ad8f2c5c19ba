"""What the commands cost: their start, ``doctor`` in a large cluster, and the base of ``serve``."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from load.pki import issue
from load.process import PYTHON, ROOT
from load.report import figure
from load.servers import fleet, serve_cluster, standalone_sections
from load.start import kubeconfig, stand_in
from load.table import Goal, Run, Table
from tests.adapter.everytool import TOOLS, busy_cluster

SIZES: Final = ((1_000, 10_000), (40_000, 150_000))
"""GPU pods, and all pods of the cluster."""
BASE: Final = 100
"""Pods of the cluster in which ``serve`` has its base."""
STARTS: Final = 5
"""Runs of a command, of which the least counts: other programs use the machine, too."""
_COMMANDS: Final = ("explain hpa", "explain pod", "idle", "top", "doctor")
_METER: Final = """
import os, sys
with open(os.devnull, "w") as sink:
    out = [(os.POSIX_SPAWN_DUP2, sink.fileno(), 1)]
    pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=out)
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""Runs a command. The peak of a process begins with that of its parent, and this one is small."""
_HELP, _FIRST, _DOCTOR, _MEMORY, _SERVE = 0.15, 0.4, 15.0, 400e6, 100e6


class Cost(NamedTuple):
    """Of one process, from its start to its end."""

    what: str
    cpu: float
    """User and system seconds."""
    peak: int
    """Highest resident bytes."""


def tools(run: Run) -> Table:
    """Each command in processes of its own, over loopback."""
    times = 1 if run.quick else STARTS
    helped = _least("--help", ("--help",), {}, run.folder, times)
    with busy_cluster(run.folder) as (_, file):
        place = {"KUBECONFIG": str(file)}
        started = [_least(name, TOOLS[name], place, run.folder, times) for name in _COMMANDS]
    large = [_doctor(run, *size) for size in (SIZES[:1] if run.quick else SIZES)]
    bases = [_base(run, keda=keda) for keda in (False, True)]
    rows = [(row.what, figure(row.cpu), figure(row.peak / 1e6)) for row in (helped, *started)]
    rows += [(row.what, figure(row.cpu), figure(row.peak / 1e6)) for row in (*large, *bases)]
    slowest = max(row.cpu for row in started)
    last = large[-1]
    goals = (
        Goal("--help in 0.15 s of CPU", f"{helped.cpu:.2f} s", helped.cpu <= _HELP),
        Goal("the first output in 0.4 s of CPU", f"{slowest:.2f} s", slowest <= _FIRST),
        Goal("doctor at 150,000 pods in 15 s of CPU", f"{last.cpu:.1f} s", last.cpu <= _DOCTOR),
        Goal("and in 400 MB", f"{last.peak / 1e6:.0f} MB", last.peak <= _MEMORY),
        Goal("serve's base in 100 MB", f"{bases[0].peak / 1e6:.0f} MB", bases[0].peak <= _SERVE),
    )
    note = (
        "The first rows are complete runs in a cluster of a few objects, with the bytecode that an "
        "installation has. `serve` has 100 GPU pods, and the CPU of its first seconds."
    )
    return Table(("what", "CPU s", "peak MB"), tuple(rows), goals, (note,))


def _least(
    what: str, arguments: Sequence[str], environ: Mapping[str, str], folder: Path, times: int
) -> Cost:
    """The least of some runs; the one before them writes the bytecode."""
    costs = [_cost(what, arguments, environ, folder) for _ in range(times + 1)]
    return min(costs[1:], key=lambda cost: cost.cpu)


def _cost(what: str, arguments: Sequence[str], environ: Mapping[str, str], folder: Path) -> Cost:
    """Run a command to its end.

    Raises:
        RuntimeError: it could not look.
    """
    variables = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    variables |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), **environ}
    command = [PYTHON, "-m", "adapter", *arguments]
    with (folder / "command.log").open("wb") as sink:
        metered = subprocess.run(
            [PYTHON, "-I", "-S", "-c", _METER, *command],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=sink,
            check=True,
        )
    code, cpu, peak = metered.stdout.split()[-3:]
    if int(code) not in (0, 1):
        raise RuntimeError(f"{what}: {(folder / 'command.log').read_text()[-500:]}")
    return Cost(what, float(cpu), int(peak) * 1024)


def _doctor(run: Run, gpu_pods: int, pods: int) -> Cost:
    pki = issue(run.folder)
    with stand_in(pki, gpu_pods, pods, run.folder, None, "--whole") as api:
        place = {"KUBECONFIG": str(kubeconfig(api, run.folder))}
        return _cost(f"doctor, {pods:,} pods", ("doctor",), place, run.folder)


def _base(run: Run, *, keda: bool) -> Cost:
    pki = issue(run.folder)
    changes = standalone_sections(pki) | {"keda": {"enabled": keda, "host": "127.0.0.1", "port": 0}}
    with (
        stand_in(pki, BASE, BASE, run.folder, None) as api,
        fleet(BASE, run.folder) as exporters,
        serve_cluster(
            pki, exporters, run.folder, kubeconfig(api, run.folder), changes=changes
        ) as server,
    ):
        time.sleep(1 if run.quick else 15)
        used = server.child.usage()
    return Cost(f"serve with {'' if keda else 'no '}KEDA", used.cpu, used.rss)
