"""The run of the demo: starts its parts, runs them for the set time, and cleans up."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from adapter.demo import days, page, serverpage, story, webpage
from adapter.demo.ahead import ExpectedReader, learn_days
from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.certificates import make_front_proxy
from adapter.demo.child import Child, DemoError
from adapter.demo.client import USER, MetricsClient, SimulatedReader
from adapter.demo.cluster import upstream
from adapter.demo.cluster.listener import start_cluster
from adapter.demo.exporters import Exporters
from adapter.demo.nodepool import DemoNodepool
from adapter.demo.options import DemoOptions
from adapter.demo.player import Player
from adapter.demo.promise import PromiseReader
from adapter.demo.screen import DemoScreen, make_screen, write_closing, write_line, write_opening
from adapter.demo.server import HOST, choose_port, configuration, serve
from adapter.demo.state import DemoCluster, DemoState, curl_options
from adapter.demo.wallclock import WallClock
from adapter.demo.world import World
from adapter.pipeline.cluster.metricsapi import pods_path

NAME: Final = "gpu-metrics-adapter"
_START_LIMIT = 60.0
"""Real seconds that ``serve`` may take to become ready."""
_FAIR_TRIES = 6
"""Requests without a value after which the demo has failed."""


def adapter_command() -> str:
    """Return the command's name, or its path if the shell does not find the name.

    A virtual environment that is not activated has the command beside its interpreter. A checkout
    that is not installed has only the module.
    """
    if shutil.which(NAME):
        return NAME
    beside = Path(sys.executable).with_name(NAME)
    if shutil.which(str(beside)):
        return shlex.quote(str(beside))
    return f"{shlex.quote(sys.executable)} -m adapter"


def run(options: DemoOptions, console: Console | None = None) -> int:
    """Run the demo to its end. Return the exit code.

    0 if it ran, also if Ctrl-C (or SIGTERM) ended it early. 1 if it could not: a port in use, or a
    ``serve`` that does not start, ends early or never has a value. A second Ctrl-C does not wait
    for the summary; the processes are ended all the same.
    """
    console = console or Console()
    try:
        asyncio.run(_run(options, console))
    except DemoError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"demo: {error}", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


async def _run(options: DemoOptions, console: Console) -> None:
    stop = asyncio.Event()
    # Signals first: one that ends the process leaves no folder with keys behind.
    with _signals(stop), _temporary_folder(keep=options.keep, console=console) as folder:
        async with contextlib.AsyncExitStack() as stack:
            with _show_learning(console, plain=options.plain):
                player, serve = await _prepare(options, folder, stack)
            screen = make_screen(player.state, console, plain=options.plain)
            write_opening(player.state, console, folder)
            ended = asyncio.create_task(serve.wait_for_end())
            stack.push_async_callback(_cancel, ended)
            await _wait_until_ready(player, serve, ended, stop, screen)
            if options.ui and not stop.is_set():
                ended = await _show_page(options, player.state, folder, console, stack, serve)
            with screen:
                await player.play(options.effective_seconds, ended, stop, screen)
            write_closing(player.state, console)
            _check(player.state, serve)


async def _prepare(
    options: DemoOptions, folder: Path, stack: contextlib.AsyncExitStack
) -> tuple[Player, Child]:
    speed = options.effective_speed
    port = choose_port(options.port)
    base = f"https://{HOST}:{port}"
    proxy = make_front_proxy(folder, time.time())
    earlier = await days.live(story.EARLIER_DAYS, options.seed, -story.BEFORE)
    nodepool = DemoNodepool(story.LIMITS, story.BEGIN, earlier.past)
    shown = await _cluster(story.WITH_NODEPOOL, options.seed, nodepool)
    reactive = await _cluster(story.REACTIVE, options.seed, None)
    learned = DemoNodepool(story.LIMITS, story.BEGIN, earlier.past)
    queued = await _cluster(story.ON_QUEUE, options.seed, learned)
    promised = await _cluster(
        story.ON_PROMISE,
        options.seed,
        DemoNodepool(story.LIMITS, story.BEGIN, earlier.past),
        lambda world: PromiseReader(world, story.PROMISE),
    )
    load = await learn_days(story.EARLIER_DAYS, options.seed, earlier.past)
    expected = await _cluster(
        story.ON_EXPECTED,
        options.seed,
        DemoNodepool(story.LIMITS, story.BEGIN, earlier.past),
        lambda world: ExpectedReader(world, load, story.BEGIN),
    )
    research = await _cluster(story.RESEARCH, options.seed, None)

    def render(name: str) -> bytes:
        for cluster in (shown, reactive, queued, research):
            world = cluster.world
            for node in world.fleet.nodes:
                if node.name == name:
                    return page.render(node, world.fleet.pods, world.workloads, cluster.namespace)
        raise KeyError(name)

    def render_server(name: str) -> bytes:
        return serverpage.render(queued.world, name.partition("/")[2])

    exporters, servers = Exporters(render), Exporters(render_server)
    stack.push_async_callback(exporters.close)
    stack.push_async_callback(servers.close)
    pods_file = folder / "pods.json"
    settings = configuration(
        folder=folder,
        pods_file=pods_file,
        proxy=proxy,
        port=port,
        speed=speed,
        users=(USER, upstream.USER),
    )
    child = serve(folder, settings, options.command)
    ca = folder / "serving" / "ca.crt"
    client = MetricsClient(base, proxy, ca)
    url = base + pods_path(shown.namespace, shown.autoscalers[0].metric)
    curl_file = folder / "curl.conf"
    curl_file.write_text(curl_options(url, proxy, ca), encoding="utf-8")
    state = DemoState(
        shown=shown,
        reactive=reactive,
        queued=queued,
        promised=promised,
        expected=expected,
        research=research,
        days=earlier,
        exporters=exporters,
        servers=servers,
        tally=client.tally,
        curl=f"curl -K {curl_file}",
        speed=speed,
        length=speed * options.effective_seconds,
        seed=options.seed,
        times=WallClock(speed),
        kubeconfig=folder / "kubeconfig",
        adapter=adapter_command(),
    )
    await start_cluster(state, base, proxy, ca, stack)
    player = Player(state, client, pods_file)
    await player.publish()
    stack.push_async_callback(child.stop)
    # Closed before serve is stopped, which otherwise waits for idle connections.
    stack.push_async_callback(client.close)
    await child.start()
    return player, child


async def _show_page(
    options: DemoOptions,
    state: DemoState,
    folder: Path,
    console: Console,
    stack: contextlib.AsyncExitStack,
    serve: Child,
) -> asyncio.Task[None]:
    """Start the page and print its address. Return the wait for the end of either process."""
    child = webpage.page(options, folder, state.kubeconfig)
    stack.push_async_callback(child.stop)
    await child.start()
    ended = asyncio.create_task(_wait_for_first_end(serve, child))
    stack.push_async_callback(_cancel, ended)
    state.page = await webpage.address(child, ended)
    write_line(console, f"The page: {state.page}")
    return ended


async def _wait_for_first_end(*children: Child) -> None:
    """Wait until a process ends, which none should; raises DemoError."""
    waits = [asyncio.create_task(child.wait_for_end()) for child in children]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in waits:
            await _cancel(task)


async def _cluster(
    setup: story.ClusterSetup,
    seed: int,
    nodepool: DemoNodepool | None,
    reading: Callable[[World], SimulatedReader] | None = None,
) -> DemoCluster:
    """Build the state of a cluster at the first picture."""
    world = World(setup.pools, setup.workloads, seed, start=-story.BEFORE)
    reader = reading(world) if reading else None
    await days.play(world, setup.hpas, nodepool, 0.0, reader)
    world.take_events()
    scalers = list(map(DemoAutoscaler, setup.hpas))
    return DemoCluster(setup.namespace, world, scalers, nodepool, setup.server_pages, reader)


async def _wait_until_ready(
    player: Player,
    serve: Child,
    ended: asyncio.Task[None],
    stop: asyncio.Event,
    screen: DemoScreen,
) -> None:
    """Wait until ``serve`` has data. Return early when stopped.

    Raises:
        DemoError: ``serve`` ended, or did not become ready in time.
    """
    deadline = time.monotonic() + _START_LIMIT
    with screen.show_waiting("starting serve"):
        while why := await player.client.ready():
            if stop.is_set():
                return
            if ended.done():
                ended.result()
            if time.monotonic() > deadline:
                raise DemoError(
                    f"serve is not ready after {_START_LIMIT:g} s:\n{why}\n"
                    f"Its log ends with:\n{serve.tail()}"
                )
            await asyncio.wait({ended}, timeout=0.1)


def _check(state: DemoState, serve: Child) -> None:
    """Raise an error if no HPA ever had a value, because the demo has then shown nothing."""
    if state.tally.requests >= _FAIR_TRIES and not state.tally.answered:
        raise DemoError(
            f"none of {state.tally.requests} requests returned a value; the log of serve ends "
            f"with:\n{serve.tail()}"
        )


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, DemoError):
        await task


def _show_learning(console: Console, *, plain: bool) -> contextlib.AbstractContextManager[object]:
    """Show progress during the seconds without a picture."""
    if plain or not console.is_terminal:
        return contextlib.nullcontext()
    return console.status("playing the days before ...")


@contextlib.contextmanager
def _temporary_folder(*, keep: bool, console: Console) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gma-demo-"))
    try:
        yield folder
    finally:
        if keep:
            console.print(f"kept: {folder}", highlight=False, soft_wrap=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Let the first signal end the story, and restore the default for the next one."""
    loop = asyncio.get_running_loop()
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end() -> None:
        stop.set()
        restore()

    def restore() -> None:
        for number in handled:
            loop.remove_signal_handler(number)

    for number in handled:
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        restore()
