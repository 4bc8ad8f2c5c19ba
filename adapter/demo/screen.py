"""The demo's output: a live picture on a terminal, lines of text elsewhere."""

from __future__ import annotations

import contextlib
import time
from typing import Protocol

from rich.console import Console
from rich.live import Live

from adapter.demo.plain import STATUS_PERIOD, event_line, nudge_line, status_line
from adapter.demo.server import AGE_LIMIT, SCRAPE, WINDOW
from adapter.demo.show import Show
from adapter.demo.summary import summary
from adapter.demo.view import View

_REFRESH = 0.2
"""Real seconds between two pictures."""


class Screen(Protocol):
    """What the player draws on. As a context manager it starts and ends the picture."""

    def __enter__(self) -> object:
        """Start the picture."""

    def __exit__(self, *_: object) -> None:
        """End it, also after an error."""

    def show(self) -> None:
        """Show what has changed; cheap if nothing has."""

    def waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """Show that something takes time."""


class Terminal:
    """The live picture, on the terminal's alternate screen."""

    def __init__(self, show: Show, console: Console) -> None:
        self._console = console
        self._live = Live(View(show), console=console, screen=True, auto_refresh=False)
        self._next = 0.0

    def __enter__(self) -> Terminal:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self) -> None:
        """Draw, a few times a second at most."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _REFRESH
            self._live.refresh()

    def waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """A spinner."""
        return self._console.status(f"{what} ...")


class Lines:
    """Prints events as they occur, and a line for each service every simulated minute."""

    def __init__(self, show: Show, console: Console) -> None:
        self._show = show
        self._console = console
        self._told = 0
        self._next = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self) -> None:
        """Print what is new."""
        events = self._show.events
        while events:
            self._print(event_line(events.popleft()))
        if self._show.world.now < self._next:
            return
        self._next = self._show.world.now + STATUS_PERIOD
        for scaler in self._show.autoscalers:
            self._print(status_line(self._show, scaler))
        self._print(nudge_line(self._show))

    def waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """A line."""
        self._print(f"{what} ...")
        return contextlib.nullcontext()

    def _print(self, line: str) -> None:
        write_line(self._console, line)


def make_screen(show: Show, console: Console, *, plain: bool) -> Screen:
    """Return the live picture if the terminal can show it, else lines."""
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return Lines(show, console)
    return Terminal(show, console)


def write_line(console: Console, text: str) -> None:
    """Print a text unchanged: one line at any width, without markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def write_opening(show: Show, console: Console, folder: object) -> None:
    """Print what is real and simulated, how time runs, and how to query the API."""
    days = len(show.days.seeds)
    for line in (
        "gpu-metrics-adapter demo",
        "Simulated: GPU nodes, pods and load. Real: the exporters' HTTP, serve, TLS, the HPA's",
        "algorithm and the plan of nodepool. nodepool orders nodes before pods wait, from what it",
        f"learned on {days} earlier days of the same load. A second cluster runs without nodepool.",
        f"Time runs {show.speed:.3g} times as fast, also in serve. In simulated seconds it scrapes",
        f"every {SCRAPE:g}, averages over {WINDOW:g} and drops values older than {AGE_LIMIT:g}.",
        f"Its configuration, certificates and log are in {folder} while the demo runs.",
        "Query the API while the demo runs:",
        show.curl,
        "",
    ):
        write_line(console, line)


def write_closing(show: Show, console: Console) -> None:
    """Print the summary."""
    console.print(summary(show), highlight=False)
