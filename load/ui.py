"""The page of ``ui`` in Chromium on 10,000 GPUs, for ten minutes with new values in every round.

Measured are the memory of the page and of the process, the time to the first paint, how long
the page takes for keys and clicks, and how long the event loop of the process is blocked.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from adapter.ui.history import POINTS
from load.process import PYTHON, Child, started, until
from load.table import Goal, Run, Table
from load.uiprocess import Meter, Step
from tests.browser.page import NoBrowserError, start

MINUTES: Final = 10.0
GPUS: Final = 10_000
EVERY: Final = 10.0
"""Seconds between two samples of the memory."""
PLOT: Final = Path(__file__).with_name("ui.png")
POINT: Final = 40
"""Bytes of one point of an HPA: time, value, target and two sizes."""
_PATIENCE: Final = 120.0
_OBSERVE: Final = """
window.slow = [];
const add = (list) => window.slow.push(...list.getEntries().map((e) => [e.duration, e.name]));
new PerformanceObserver(add).observe({type: "event", durationThreshold: 16});
"""


class MemorySample(NamedTuple):
    """Both sides at one moment."""

    minute: float
    heap: int
    """Bytes of the page's objects, after a collection."""
    rss: int
    """Resident bytes of the process."""


class Visit(NamedTuple):
    """What one visit of the page took, in milliseconds."""

    paint: float
    shown: float
    """Until all GPUs are drawn."""
    events: list[tuple[float, str]]
    """Keys and clicks that took longer than 16 ms, from the input to the next frame, by name."""
    inputs: int


class Measured(NamedTuple):
    """One run."""

    gpus: int
    visits: list[Visit]
    samples: list[MemorySample]
    meter: Meter
    rounds: int
    """Updates of the load that the page received."""
    busy: float
    """The machine's load average over the last 15 minutes."""
    looks: int
    """Updates of the HPAs: each adds a point to each HPA."""


def ui(run: Run) -> Table:
    """Ten minutes of the page, and a plot."""
    gpus, minutes = (1_000, 0.5) if run.quick else (GPUS, MINUTES)
    try:
        found = _measure(run.folder, gpus, minutes)
    except (NoBrowserError, WebDriverException) as error:
        raise RuntimeError(f"Chromium: {error}") from None
    if not run.quick:
        draw(found.samples, PLOT)
    return table(found)


def _measure(folder: Path, gpus: int, minutes: float) -> Measured:
    meter = folder / "meter.json"
    with _cluster(folder, gpus) as kubeconfig, _page(folder, meter, kubeconfig) as (child, address):
        browser = start()
        try:
            visits = [_visit(browser, address, gpus)]
            samples = list(_samples(browser, child, minutes))
            rounds, looks = browser.execute_script("return [window.rounds, window.looks]")
            visits.append(_visit(browser, address.partition("?")[0], gpus))
        finally:
            browser.quit()
        seen = msgspec.json.decode(meter.read_bytes(), type=Meter)
    return Measured(gpus, visits, samples, seen, rounds, os.getloadavg()[2], looks)


@contextmanager
def _cluster(folder: Path, gpus: int) -> Iterator[Path]:
    command = [PYTHON, "-m", "load.uicluster", "--gpus", str(gpus), "--folder", str(folder)]
    kubeconfig = folder / "kubeconfig"
    with started("cluster", command, folder) as child:
        until(child, "kubeconfig", kubeconfig.exists, _PATIENCE)
        yield kubeconfig


@contextmanager
def _page(folder: Path, meter: Path, kubeconfig: Path) -> Iterator[tuple[Child, str]]:
    command = [PYTHON, "-m", "load.uiprocess", str(meter), str(kubeconfig)]
    with started("ui", command, folder) as child:
        until(child, "address", lambda: _address(child.log) != "")
        yield child, _address(child.log)


def _address(log: Path) -> str:
    found = re.search(r"http://\S+token=\S+", log.read_text())
    return found[0] if found else ""


def _visit(browser: webdriver.Chrome, address: str, gpus: int) -> Visit:
    browser.get("about:blank")
    browser.get(address)
    text = f"{gpus:,} GPUs"
    _wait(browser, f"document.getElementById('fleet-count').textContent === '{text}'")
    shown = float(browser.execute_script("return performance.now()"))
    paint = browser.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    _wait(browser, "document.getElementById('hpas-body').querySelector('tbody tr')")
    inputs = _interact(browser)
    return Visit(float(paint), shown, _slow(browser), inputs)


def _slow(browser: webdriver.Chrome) -> list[tuple[float, str]]:
    rows = browser.execute_script("return window.slow")
    return [(float(duration), str(name)) for duration, name in rows]


def _interact(browser: webdriver.Chrome) -> int:
    """Move over the map, sort the HPAs, search, and go back; return the number of inputs."""
    browser.execute_script(_OBSERVE)
    browser.execute_script("document.querySelector('.map-scroll').focus()")
    keys = [Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.END, Keys.HOME] * 2
    keys += ["/", *"node-0042", Keys.ESCAPE]
    for key in keys:
        ActionChains(browser).send_keys(key).perform()
    heads = browser.find_elements("css selector", "#hpas-body th button")
    for head in heads:
        head.click()
    _wait(browser, "location.hash.indexOf('q=') < 0")
    time.sleep(1)  # entries of the observer arrive later
    return len(keys) + len(heads)


def _samples(browser: webdriver.Chrome, child: Child, minutes: float) -> Iterator[MemorySample]:
    browser.execute_script(
        "window.rounds = window.looks = 0; const all = new EventSource('/api/events');"
        "all.addEventListener('load', () => { window.rounds += 1; });"
        "all.addEventListener('hpas', () => { window.looks += 1; });"
    )
    begun = time.monotonic()
    while (spent := time.monotonic() - begun) < minutes * 60:
        child.check()
        heap = browser.execute_script("gc(); gc(); return performance.memory.usedJSHeapSize")
        yield MemorySample(spent / 60, int(heap), child.usage().rss)
        time.sleep(EVERY)


def _wait(browser: webdriver.Chrome, code: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not browser.execute_script(f"return ({code})"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"never true in the page: {code}")
        time.sleep(0.02)


def growth(values: Sequence[float]) -> float:
    """Return by which share a size grew from the end of the first quarter to the end."""
    length = max(1, len(values) // 10)
    quarter = max(length, len(values) // 4)
    return median(values[-length:]) / median(values[quarter - length : quarter]) - 1


def points(found: Measured, share: float) -> float:
    """Return the bytes of the points that the process keeps of all HPAs, after a share of the time.

    They are kept for an hour, and are part of what the page shows.
    """
    return min(POINTS, found.looks * share) * hpas(found) * POINT


def hpas(found: Measured) -> int:
    """Return the number of HPAs."""
    return found.gpus // 5


def table(found: Measured) -> Table:
    """A row for each quarter of the time; the goals have the other figures."""
    samples, meter = found.samples, found.meter
    end = samples[-1].minute
    rows = []
    for quarter in range(5):
        at = min(samples, key=lambda sample: abs(sample.minute - end * quarter / 4))
        rows.append((f"{at.minute:.1f}", f"{at.heap / 1e6:.1f}", f"{at.rss / 1e6:.0f}"))
    heap = growth([sample.heap for sample in samples])
    rss = growth([sample.rss - points(found, sample.minute / end) for sample in samples])
    paint = max(visit.paint for visit in found.visits)
    slowest = max((each for visit in found.visits for each in visit.events), default=(16.0, ""))
    step = max(meter.steps, default=Step(0.0, 0.0, ""))
    return Table(
        ("minute", "page heap MB", "ui RSS MB"),
        tuple(rows),
        (
            Goal("first paint below 2 s", f"{paint / 1e3:.2f} s", paint < 2_000),
            Goal(
                "each key and click below 100 ms",
                f"{slowest[0]:.0f} ms at most ({slowest[1]})",
                slowest[0] < 100,
            ),
            Goal("the page's heap grows by at most 5 %", f"{heap:+.1%}", heap <= 0.05),
            Goal(
                "the process grows by at most 5 % beside the points of HPAs",
                f"{rss:+.1%}",
                rss <= 0.05,
            ),
            Goal(
                "no step of the event loop above 50 ms of CPU",
                f"{step.cpu * 1e3:.0f} ms at most ({step.name.split('.')[-1]})",
                step.cpu < 0.05,
            ),
        ),
        _notes(found),
    )


def _notes(found: Measured) -> tuple[str, ...]:
    late = sorted(found.meter.delays, reverse=True)
    shown = " and ".join(f"{visit.shown / 1e3:.2f} s" for visit in found.visits)
    inputs = sum(visit.inputs for visit in found.visits)
    slow = sum(len(visit.events) for visit in found.visits)
    size = (
        f"{found.gpus:,} GPUs and pods, {hpas(found):,} HPAs and workloads. The page received "
        f"{found.rounds} updates of the load and {found.looks} of the HPAs."
    )
    memory = (
        "Growth is from the end of the first quarter to the end. The heap is measured after a "
        f"collection. The process keeps {POINTS} points of each HPA, of {POINT} bytes each: "
        f"{points(found, 1.0) / 1e6:.0f} MB after this time, and at most "
        f"{POINTS * POINT * hpas(found) / 1e6:.0f} MB."
    )
    page = (
        f"All GPUs were drawn after {shown}, before and after the run. {inputs} keys and clicks "
        f"caused {slow} events of the page that took longer than 16 ms."
    )
    loop = (
        f"A timer of the event loop was late by {late[0] * 1e3 if late else 0:.0f} ms at most, "
        f"and by more than 50 ms {sum(delay > 0.05 for delay in late)} times in "
        f"{found.meter.seconds:.0f} s, without the time in which the machine ran other processes. "
        f"The load average of the machine was {found.busy:.0f} at the end, on "
        f"{os.cpu_count()} cores: times of the page and of the clock include other programs."
    )
    return size, memory, page, loop


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
