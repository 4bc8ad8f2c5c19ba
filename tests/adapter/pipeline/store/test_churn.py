"""What comes and goes leaves nothing: after twice as many generations there is as much in memory.

In a generation every pod, device, server and name is new, and the former ones are gone. Counted are
objects and bytes, not the resident memory, which also depends on the allocator.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from itertools import count

import pytest

from adapter.pipeline.catalog import labelvalue
from adapter.pipeline.exposition import line
from tests.adapter.world import World, make_pod, row

_GENERATIONS = 12
_NODES = 5
_PODS = 8
_WEIGHT = "weight"
"""Begins a line of the process that is weighed; the log has others."""

Page = Callable[[int, list[str]], str]


def devices(serial: int, pods: list[str]) -> str:
    """A page of dcgm-exporter with new devices and pods."""
    return "".join(
        row(series, serial % 90, pod, uuid=f"GPU-{serial}-{number}")
        for number, pod in enumerate(pods)
        for series in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE")
    )


def labels(serial: int, pods: list[str]) -> str:
    """The same with a new label name and a new value of it in each row."""
    return "".join(
        row(
            "DCGM_FI_DEV_GPU_UTIL",
            serial % 90,
            pod,
            uuid=f"GPU-{serial}-{number}",
            more=f'l_{serial}_{number}="v{serial}"',
        )
        for number, pod in enumerate(pods)
    )


def series(serial: int, pods: list[str]) -> str:
    """Series that nobody knows, ever new ones, beside known ones without a pod."""
    unknown = (f'made_up_{serial}_{n}{{of="{serial}"}} 1\n' for n in range(len(pods)))
    return "".join(unknown) + row("DCGM_FI_DEV_GPU_UTIL", 1, f"gone-{serial}", uuid=f"G{serial}")


def servers(serial: int, pods: list[str]) -> str:
    """An inference server with models and adapters of new names."""
    return "".join(
        f'vllm:num_requests_waiting{{model_name="m-{serial}",engine="{n}",lora="l-{serial}"}} {n}\n'
        for n in range(len(pods))
    )


def _weigh() -> tuple[int, int]:
    labelvalue._remembered.cache_clear()  # fills up to its bound only after thousands of names
    line._label_name.cache_clear()
    gc.collect()
    return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]


PAGES = {page.__name__: page for page in (devices, labels, series, servers)}


@pytest.mark.parametrize("page", PAGES)
def test_twice_as_many_generations_weigh_the_same(page: str) -> None:
    """In a process of its own: threads and caches of other tests would be weighed too."""
    command = [sys.executable, "-m", __name__, page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (_, _), (objects, size), (objects_later, size_later) = (
        map(int, line.split()[1:]) for line in done.stdout.splitlines() if line.startswith(_WEIGHT)
    )
    generation_size = _NODES * _PODS * 1_000
    assert objects_later - objects < 200, "objects of a fraction of a generation"
    assert size_later - size < generation_size, "bytes of less than one generation of twelve"


def churn(page: Page) -> None:
    """Replace everything in each generation; after every twelve, print objects and bytes."""
    tracemalloc.start(1)
    world, serials = World(), count()
    now, former = time.time(), list[tuple[str, str]]()
    # Bounded caches fill up with the first names; a leak grows on.
    for generation in range(3 * _GENERATIONS):
        now += 15
        kept, former = former, []
        for node in range(_NODES):
            names = [f"p-{next(serials)}" for _ in range(_PODS)]
            origin = f"http://exporter-{generation}-{node}"
            for name in names:
                world.put(
                    make_pod(name, node=f"node-{node}", uid=f"uid-{name}", labels={"h": name})
                )
                former.append((origin, name))
            serves = page is servers
            world.scrape(
                page(next(serials), names),
                now,
                origin=origin,
                node=None if serves else f"node-{node}",
                pod=("ml", names[0]) if serves else None,
                serves=serves,
            )
            for name in names:
                world.value(name, "gpu_utilization", now)
        for origin, name in kept:
            world.remove(name)
            world.store.forget(origin)
        if (generation + 1) % _GENERATIONS == 0:
            print(_WEIGHT, *_weigh())


if __name__ == "__main__":
    churn(PAGES[sys.argv[1]])
