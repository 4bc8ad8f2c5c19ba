"""How long the page of ``ui`` takes at 10,000 GPUs: first paint, keys, clicks, and its event loop.

New values arrive all the time. Each interaction is done twice: on a fresh page, and again later.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from load import uipage
from load.table import Goal, Run, Table
from load.uiprocess import Meter, Step
from tests.browser.page import NoBrowserError, start

WATCH: Final = 40.0
"""Seconds in which the page only receives new values, between the two visits."""
_LIMIT: Final = 100.0
"""Milliseconds of one interaction."""
_STEP: Final = 0.05
"""Seconds of CPU of one step of the event loop."""
_TRIES: Final = 20
_LATER: Final = 0.3
"""Seconds after which the browser has reported what an input took."""
_OBSERVE: Final = """
window.slow = [];
const add = (list) => window.slow.push(...list.getEntries().map((e) => e.duration));
new PerformanceObserver(add).observe({type: "event", durationThreshold: 16});
"""

Act = Callable[[], object]


class Visit(NamedTuple):
    """What one visit of the page took, in milliseconds."""

    paint: float
    shown: float
    """Until all GPUs are drawn."""
    inputs: dict[str, list[float]]
    """The longest event of each input, from the input to the next frame, by interaction."""


class Measured(NamedTuple):
    """One run."""

    gpus: int
    visits: list[Visit]
    meter: Meter
    rounds: int
    """Updates of the load that the page received while it was watched."""
    busy: float
    """The machine's load average over the last minute."""


def uitimes(run: Run) -> Table:
    """Two visits of the page."""
    gpus, watch = (uipage.QUICK, 2.0) if run.quick else (uipage.GPUS, WATCH)
    try:
        return table(_measure(run.folder, gpus, watch))
    except (NoBrowserError, WebDriverException) as error:
        raise RuntimeError(f"Chromium: {error}") from None


def _measure(folder: Path, gpus: int, watch: float) -> Measured:
    meter = folder / "meter.json"
    with (
        uipage.cluster(folder, gpus) as kubeconfig,
        uipage.page(folder, meter, kubeconfig) as (_, address),
    ):
        browser = start()
        try:
            visits = [_visit(browser, address, gpus)]
            uipage.count_rounds(browser)
            time.sleep(watch)
            rounds = int(browser.execute_script("return window.rounds"))
            visits.append(_visit(browser, address.partition("?")[0], gpus))
        finally:
            browser.quit()
        metered = msgspec.json.decode(meter.read_bytes(), type=Meter)
    return Measured(gpus, visits, metered, rounds, os.getloadavg()[0])


def _visit(browser: webdriver.Chrome, address: str, gpus: int) -> Visit:
    paint, shown = uipage.visit(browser, address, gpus)
    browser.execute_script(_OBSERVE)
    inputs: dict[str, list[float]] = defaultdict(list)
    for name, act in _interactions(browser):
        browser.execute_script("window.slow.length = 0")
        act()
        time.sleep(_LATER)
        slow = browser.execute_script("return window.slow")
        inputs[name].append(max(map(float, slow), default=16.0))
    return Visit(paint, shown, inputs)


def _interactions(browser: webdriver.Chrome) -> Iterator[tuple[str, Act]]:
    """Yield inputs, each with its name. The next one is asked for after the last one is done."""

    def press(key: str) -> Act:
        return lambda: ActionChains(browser).send_keys(key).perform()

    def click(selector: str) -> Act:
        return lambda: _click(browser, selector)

    uipage.wait(browser, "document.querySelector('.map-scroll')")
    browser.execute_script("document.querySelector('.map-scroll').focus()")
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.END, Keys.HOME) * 2:
        yield "key on the map", press(key)
    for key in ("/", *"node-0042"):
        yield "letter of the search", press(key)
    time.sleep(0.5)
    yield "end of the search", press(Keys.ESCAPE)
    for panel, view in _TABLES:
        if view:
            yield "another view of a panel", click(view)
        for head in browser.find_elements("css selector", f"#{panel}-body th button"):
            if head.is_displayed():
                _see(browser, head)
                yield "order of a table", head.click
    yield "another view of a panel", click("#fleet-tools button[data-value='']")
    for panel in ("hpas", "pods"):
        yield "open an explanation", click(f"#{panel}-body tbody a")
        yield "close an explanation", press(Keys.ESCAPE)
    yield "pause and resume", click("#pause")
    time.sleep(5)
    yield "pause and resume", click("#pause")
    yield "theme", click("#theme")


_TABLES: Final = (
    ("hpas", ""),
    ("pods", "#pods-tools button[data-value=workloads]"),
    ("pods", "#pods-tools button[data-value=all]"),
    ("fleet", "#fleet-tools button[data-value=table]"),
)
"""Panels with a table, and what shows it."""


def _click(browser: webdriver.Chrome, selector: str) -> None:
    uipage.wait(browser, f'document.querySelector("{selector}")')
    for _ in range(_TRIES):
        # New values build a row again, also between the look for it and the click.
        with contextlib.suppress(StaleElementReferenceException):
            element = browser.find_element("css selector", selector)
            _see(browser, element)
            element.click()
            return
    raise RuntimeError(f"never there for a click: {selector}")


def _see(browser: webdriver.Chrome, element: WebElement) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


def table(measured: Measured) -> Table:
    """A row for each kind of interaction; the goals have the other figures."""
    inputs: dict[str, list[float]] = defaultdict(list)
    for visit in measured.visits:
        for name, took in visit.inputs.items():
            inputs[name] += took
    slowest = max((max(took), name) for name, took in inputs.items())
    paint = max(visit.paint for visit in measured.visits)
    step = max(measured.meter.steps, default=Step(0.0, 0.0, ""))
    return Table(
        ("interaction", "inputs", "median ms", "longest ms"),
        tuple(
            (name, str(len(took)), f"{median(took):.0f}", f"{max(took):.0f}")
            for name, took in inputs.items()
        ),
        (
            Goal("first paint below 2 s", f"{paint / 1e3:.2f} s", paint < 2_000),
            Goal(
                f"each interaction below {_LIMIT:g} ms",
                f"{slowest[0]:.0f} ms at most ({slowest[1]})",
                slowest[0] < _LIMIT,
            ),
            Goal(
                f"no step of the event loop above {_STEP * 1e3:g} ms of CPU",
                f"{step.cpu * 1e3:.0f} ms at most ({step.name.split('.')[-1]})",
                step.cpu < _STEP,
            ),
        ),
        _notes(measured),
    )


def _notes(measured: Measured) -> tuple[str, ...]:
    late = sorted(measured.meter.delays, reverse=True)
    shown = " and ".join(f"{visit.shown / 1e3:.2f} s" for visit in measured.visits)
    page = (
        f"{measured.gpus:,} GPUs and pods, {measured.gpus // 5:,} HPAs and workloads. All GPUs "
        f"were drawn after {shown}. In {WATCH:.0f} s between the visits, the page received "
        f"{measured.rounds} updates of the load. An interaction lasts from the input to the next "
        "frame; the browser reports those of 16 ms and more, in steps of 8 ms."
    )
    loop = (
        f"A timer of the event loop was late by {late[0] * 1e3 if late else 0:.0f} ms at most, "
        f"and by more than 50 ms {sum(delay > 0.05 for delay in late)} times in "
        f"{measured.meter.seconds:.0f} s, without the time in which the machine ran other "
        f"processes. The load average of the machine was {measured.busy:.0f} at the end, on "
        f"{os.cpu_count()} cores: times of the page and of the clock include other programs."
    )
    return page, loop
