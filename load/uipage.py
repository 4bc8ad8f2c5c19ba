"""The page of ``ui`` in Chromium, on a simulated cluster: what both of its benchmarks need."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from selenium import webdriver

from load.process import PYTHON, Child, run_child, wait_until

GPUS: Final = 10_000
QUICK: Final = 1_000
"""GPUs of a smoke run."""
_PATIENCE: Final = 120.0


@contextmanager
def cluster(folder: Path, gpus: int) -> Iterator[Path]:
    """Serve the simulated cluster; yield its kubeconfig."""
    command = [PYTHON, "-m", "load.uicluster", "--gpus", str(gpus), "--folder", str(folder)]
    kubeconfig = folder / "kubeconfig"
    with run_child("cluster", command, folder) as child:
        wait_until(child, "kubeconfig", kubeconfig.exists, _PATIENCE)
        yield kubeconfig


@contextmanager
def page(folder: Path, meter: Path, kubeconfig: Path) -> Iterator[tuple[Child, str]]:
    """Run ``ui`` with a meter of its event loop; yield it and the address of the page."""
    command = [PYTHON, "-m", "load.uiprocess", str(meter), str(kubeconfig)]
    with run_child("ui", command, folder) as child:
        wait_until(child, "address", lambda: _address(child.log) != "")
        yield child, _address(child.log)


def _address(log: Path) -> str:
    match = re.search(r"http://\S+token=\S+", log.read_text())
    return match[0] if match else ""


def visit(browser: webdriver.Chrome, address: str, gpus: int) -> tuple[float, float]:
    """Open the page; return the milliseconds to its first paint, and until all GPUs are drawn."""
    browser.get("about:blank")
    browser.get(address)
    text = f"{gpus:,} GPUs"
    wait(browser, f"document.getElementById('fleet-count').textContent === '{text}'")
    shown = float(browser.execute_script("return performance.now()"))
    paint = browser.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    wait(browser, "document.getElementById('hpas-body').querySelector('tbody tr')")
    return float(paint), shown


def count_rounds(browser: webdriver.Chrome) -> None:
    """Count the updates of the load and of the HPAs that the page receives, from now on."""
    browser.execute_script(
        "window.rounds = window.looks = 0; const all = new EventSource('/api/events');"
        "all.addEventListener('load', () => { window.rounds += 1; });"
        "all.addEventListener('hpas', () => { window.looks += 1; });"
    )


def wait(browser: webdriver.Chrome, code: str) -> None:
    """Wait until an expression is true."""
    deadline = time.monotonic() + _PATIENCE
    while not browser.execute_script(f"return ({code})"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"never true in the page: {code}")
        time.sleep(0.02)
