"""``ui`` with a meter on its event loop: ``python -m load.uiprocess METER KUBECONFIG``.

The meter is a file of JSON that is replaced every second: the longest steps of the loop, as CPU
time of its thread and as time of the clock, and the longest delays of a timer.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
import threading
import time
from asyncio import events
from pathlib import Path
from typing import Any, Final

import msgspec

from adapter.tools.idle.prices import load
from adapter.tools.ui.options import UiOptions
from adapter.tools.ui.run import SWITCH, serve_page

KEPT: Final = 2_000
_TICK: Final = 0.005
_SCHEDULED: Final = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")


class Step(msgspec.Struct, order=True):
    """One step of the loop, which nothing else of it can interrupt."""

    cpu: float
    wall: float
    name: str


class Meter(msgspec.Struct):
    """What was seen so far."""

    steps: list[Step] = []
    """The longest by CPU time."""
    delays: list[float] = []
    """The longest delays of a timer, in seconds, without the time for which the machine ran
    other processes instead of this thread."""
    ticks: int = 0
    seconds: float = 0.0


def measure_steps(meter: Meter) -> None:
    """Measure every callback of asyncio's loop."""
    run, cpu, wall = events.Handle._run, time.thread_time, time.perf_counter

    def run_measured(self: Any) -> None:
        began, wall_began = cpu(), wall()
        run(self)
        spent = cpu() - began
        if spent > 0.002:
            _keep(meter.steps, Step(spent, wall() - wall_began, _name(self)))

    events.Handle._run = run_measured  # type: ignore[method-assign] # asyncio has no hook


def _name(handle: Any) -> str:
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return task.get_name() + " " + getattr(task.get_coro(), "__qualname__", "")
    return getattr(callback, "__qualname__", repr(callback))


def _keep(heap: list[Any], value: Any) -> None:
    if len(heap) < KEPT:
        heapq.heappush(heap, value)
    else:
        heapq.heappushpop(heap, value)


async def _tick(meter: Meter, file: Path) -> None:
    began = written = time.perf_counter()
    while True:
        moment, queued = time.perf_counter(), _queued_seconds()
        await asyncio.sleep(_TICK)
        late = time.perf_counter() - moment - _TICK - (_queued_seconds() - queued)
        meter.ticks += 1
        if late > _TICK:
            _keep(meter.delays, late)
        if moment - written > 1:
            written, meter.seconds = moment, moment - began
            fresh = file.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(meter))
            fresh.replace(file)


def _queued_seconds() -> float:
    """Return the seconds for which this thread waited for a core."""
    return int(_SCHEDULED.read_bytes().split()[1]) / 1e9


async def _run(file: Path, kubeconfig: Path) -> None:
    meter = Meter()
    measure_steps(meter)
    ticking = asyncio.create_task(_tick(meter, file), name="meter")
    await serve_page(UiOptions(kubeconfig, browser=False), load(None))
    ticking.cancel()


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    asyncio.run(_run(Path(sys.argv[1]), Path(sys.argv[2])))
