"""The demo's output: a live picture on a terminal, lines of text elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.live import Live

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.fleet import Stage
from adapter.demo.server import AGE_LIMIT, SCRAPE, WINDOW
from adapter.demo.state import DemoState, clock
from adapter.demo.summary import summary
from adapter.demo.view import View
from adapter.demo.world import DemoEvent
from adapter.nodepool.model.reason import count_pods

STATUS_PERIOD = 60.0
"""Seconds of the simulation between two lines about each service."""
_REFRESH = 0.2
"""Real seconds between two pictures."""


class DemoScreen(Protocol):
    """What the player draws on. As a context manager it starts and ends the picture."""

    def __enter__(self) -> object:
        """Start the picture."""

    def __exit__(self, *_: object) -> None:
        """End it, also after an error."""

    def show(self) -> None:
        """Show what has changed; cheap if nothing has."""

    def show_waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """Show that something takes time."""


class Terminal:
    """The live picture, on the terminal's alternate screen."""

    def __init__(self, state: DemoState, console: Console) -> None:
        self._console = console
        self._live = Live(View(state), console=console, screen=True, auto_refresh=False)
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

    def show_waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """A spinner."""
        return self._console.status(f"{what} ...")


class Lines:
    """Prints events as they occur, and a line for each service every simulated minute."""

    def __init__(self, state: DemoState, console: Console) -> None:
        self._state = state
        self._console = console
        self._next = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self) -> None:
        """Print what is new."""
        events = self._state.events
        while events:
            write_line(self._console, event_line(events.popleft()))
        if self._state.world.now < self._next:
            return
        self._next = self._state.world.now + STATUS_PERIOD
        for scaler in self._state.autoscalers:
            write_line(self._console, status_line(self._state, scaler))
        for line in signal_lines(self._state):
            write_line(self._console, line)
        write_line(self._console, nodepool_line(self._state))

    def show_waiting(self, what: str) -> contextlib.AbstractContextManager[object]:
        """A line."""
        write_line(self._console, f"{what} ...")
        return contextlib.nullcontext()


def event_line(event: DemoEvent) -> str:
    """Format one event."""
    return f"{clock(event.at)}  {event.about}: {event.text}"


def status_line(state: DemoState, scaler: DemoAutoscaler) -> str:
    """Format the current state of one service."""
    world, name = state.world, scaler.service
    stages, latest = world.stages(name), scaler.latest
    value = "none" if latest is None or latest.value is None else f"{latest.value:.1f}"
    return (
        f"{clock(world.now)}  {name}: {world.rate(name):.1f} req/s, "
        f"queue {world.services[name].queue}, {world.wanted[name]} wanted, "
        f"{stages[Stage.READY]} ready, {stages[Stage.STARTING]} loading, "
        f"{stages[Stage.PENDING]} without a GPU; {scaler.metric} {value}, target {scaler.target:g}"
    )


def signal_lines(state: DemoState) -> Iterator[str]:
    """Format the current state of the services whose HPA reads something else, a line each."""
    for signal, cluster in state.signals.items():
        world = cluster.world
        for name, service in world.services.items() if cluster is not state.shown else ():
            yield (
                f"{clock(world.now)}  {name}, same requests, scaled on {signal}: "
                f"{service.waiting} wait, {world.wanted[name]} wanted, "
                f"{world.stages(name)[Stage.READY]} ready"
            )


def nodepool_line(state: DemoState) -> str:
    """Headroom, and how long the pods of both clusters have waited for a GPU so far."""
    orders = state.shown.nodepool.orders if state.shown.nodepool else ()
    names = [scaler.service for scaler in state.reactive.autoscalers]
    with_it, without = (
        sum(map(cluster.world.waiting_seconds, names)) for cluster in state.clusters
    )
    headroom = count_pods(sum(order.replicas for order in orders))
    return (
        f"{clock(state.world.now)}  nodepool: {headroom} of headroom; waited for a GPU so far: "
        f"{with_it:.0f} pod-seconds with it, {without:.0f} without"
    )


def make_screen(state: DemoState, console: Console, *, plain: bool) -> DemoScreen:
    """Return the live picture if the terminal can show it, else lines."""
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return Lines(state, console)
    return Terminal(state, console)


def write_line(console: Console, text: str) -> None:
    """Print a text unchanged: one line at any width, without markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def write_opening(state: DemoState, console: Console, folder: object) -> None:
    """Print what is real and simulated, how time runs, and how to query the API."""
    days = len(state.days.seeds)
    for line in (
        "gpu-metrics-adapter demo",
        "Simulated: GPU nodes, pods and load. Real: the exporters' HTTP, serve, TLS, the HPA's",
        "algorithm and the plan of nodepool. nodepool orders nodes before pods wait, from what it",
        f"learned on {days} earlier days of the same load. The same load also runs on a cluster",
        "without nodepool, and on two whose HPAs read the queue, and how near the servers are to",
        "breaking a promise, instead of GPU utilization. serve does not see the promised one: its",
        "minutes are real, so the control law runs in the simulation.",
        f"Time runs {state.speed:.3g} times as fast, also in serve. In simulated time it scrapes",
        f"every {SCRAPE:g} s, averages over {WINDOW:g} s and drops values after {AGE_LIMIT:g} s.",
        f"Its configuration, certificates and log are in {folder} while the demo runs.",
        "Query the API while the demo runs:",
        state.curl,
        "Or use it as a cluster, from a second terminal:",
        f"export KUBECONFIG={state.kubeconfig}",
        f"{state.adapter} top",
        f"{state.adapter} explain hpa chat",
        "kubectl get gpus",
        "",
    ):
        write_line(console, line)


def write_closing(state: DemoState, console: Console) -> None:
    """Print the summary."""
    console.print(summary(state), highlight=False)
