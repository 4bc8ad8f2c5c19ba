"""Memory of the page and the process of ``ui`` at 10,000 GPUs, over ten minutes of new values."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from selenium import webdriver
from selenium.common.exceptions import WebDriverException

from adapter.tools.ui.history import POINTS
from load import uipage
from load.process import Child
from load.table import Goal, Run, Table
from tests.browser.page import NoBrowserError, start

MINUTES: Final = 10.0
EVERY: Final = 10.0
"""Seconds between two samples."""
PLOT: Final = Path(__file__).with_name("ui.png")
POINT: Final = 40
"""Bytes of one point of an HPA: time, value, target and two sizes."""


class MemorySample(NamedTuple):
    """Both sides at one moment."""

    minute: float
    heap: int
    """Bytes of the page's objects, after a collection."""
    rss: int
    """Resident bytes of the process."""


class Measured(NamedTuple):
    """One run."""

    gpus: int
    samples: list[MemorySample]
    rounds: int
    """Updates of the load that the page received."""
    looks: int
    """Updates of the HPAs: each adds a point to each HPA."""
    busy: float
    """The machine's load average over the last 15 minutes."""


def uimemory(run: Run) -> Table:
    """Ten minutes of the page, and a plot."""
    gpus, minutes = (uipage.QUICK, 0.5) if run.quick else (uipage.GPUS, MINUTES)
    try:
        measured = _measure(run.folder, gpus, minutes)
    except (NoBrowserError, WebDriverException) as error:
        raise RuntimeError(f"Chromium: {error}") from None
    if not run.quick:
        draw(measured.samples, PLOT)
    return table(measured)


def _measure(folder: Path, gpus: int, minutes: float) -> Measured:
    with (
        uipage.cluster(folder, gpus) as kubeconfig,
        uipage.page(folder, folder / "meter.json", kubeconfig) as (child, address),
    ):
        browser = start()
        try:
            uipage.visit(browser, address, gpus)
            uipage.count_rounds(browser)
            samples = list(_samples(browser, child, minutes))
            rounds, looks = browser.execute_script("return [window.rounds, window.looks]")
        finally:
            browser.quit()
    return Measured(gpus, samples, rounds, looks, os.getloadavg()[2])


def _samples(browser: webdriver.Chrome, child: Child, minutes: float) -> Iterator[MemorySample]:
    begun = time.monotonic()
    while (spent := time.monotonic() - begun) < minutes * 60:
        child.check()
        heap = browser.execute_script("gc(); gc(); return performance.memory.usedJSHeapSize")
        yield MemorySample(spent / 60, int(heap), child.usage().rss)
        time.sleep(EVERY)


def growth(values: Sequence[float]) -> float:
    """Return by which share a size grew from the end of the first quarter to the end."""
    length = max(1, len(values) // 10)
    quarter = max(length, len(values) // 4)
    return median(values[-length:]) / median(values[quarter - length : quarter]) - 1


def points(measured: Measured, share: float) -> float:
    """Return the bytes of the points that the process keeps of all HPAs, after a share of the time.

    They are kept for an hour, and are part of what the page shows.
    """
    return min(POINTS, measured.looks * share) * hpas(measured) * POINT


def hpas(measured: Measured) -> int:
    """Return the number of HPAs."""
    return measured.gpus // 5


def table(measured: Measured) -> Table:
    """A row for each quarter of the time."""
    samples = measured.samples
    end = samples[-1].minute
    rows = []
    for quarter in range(5):
        nearest = min(samples, key=lambda sample: abs(sample.minute - end * quarter / 4))
        point_bytes = points(measured, nearest.minute / end)
        rows.append(
            (
                f"{nearest.minute:.1f}",
                f"{nearest.heap / 1e6:.1f}",
                f"{nearest.rss / 1e6:.0f}",
                f"{point_bytes / 1e6:.1f}",
            )
        )
    heap = growth([sample.heap for sample in samples])
    whole = growth([sample.rss for sample in samples])
    rss = growth([sample.rss - points(measured, sample.minute / end) for sample in samples])
    return Table(
        ("minute", "page heap MB", "ui RSS MB", "of it points of HPAs MB"),
        tuple(rows),
        (
            Goal("the page's heap grows by at most 5 %", f"{heap:+.1%}", heap <= 0.05),
            Goal(
                "the process grows by at most 5 % beside the points of HPAs",
                f"{rss:+.1%}; with them {whole:+.1%}",
                rss <= 0.05,
            ),
        ),
        _notes(measured),
    )


def _notes(measured: Measured) -> tuple[str, ...]:
    size = (
        f"{measured.gpus:,} GPUs and pods, {hpas(measured):,} HPAs and workloads. The page "
        f"received {measured.rounds} updates of the load and {measured.looks} of the HPAs. The "
        f"load average of the machine was {measured.busy:.0f} at the end, on {os.cpu_count()} "
        "cores."
    )
    memory = (
        "Growth is from the end of the first quarter to the end. The heap is measured after a "
        f"collection. The process keeps {POINTS} points of each HPA, of {POINT} bytes each: "
        f"{points(measured, 1.0) / 1e6:.0f} MB after this time, and at most "
        f"{POINTS * POINT * hpas(measured) / 1e6:.0f} MB."
    )
    return size, memory


def draw(samples: list[MemorySample], path: Path) -> None:
    """Write both sizes over time as a PNG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - its import takes half a second

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    minutes = [sample.minute for sample in samples]
    axes.plot(minutes, [sample.rss / 1e6 for sample in samples], label="ui, resident")
    axes.plot(minutes, [sample.heap / 1e6 for sample in samples], label="page, heap")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes with an update every few seconds")
    axes.set_ylabel("MB")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
