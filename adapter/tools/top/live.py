"""The live picture on a terminal: keys, signals, rounds of reading, and drawing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.style import Style as RichStyle

from adapter.config.process.output import Screen, screen_of
from adapter.tools.client.access import Api
from adapter.tools.client.tables import ObjectTable
from adapter.tools.top.explanations import explanation
from adapter.tools.top.facts import LISTS, ClusterLists, ListName, ReadScope, look
from adapter.tools.top.frame import HELP, Painter, Scene
from adapter.tools.top.keys import KeyReader
from adapter.tools.top.lines import Line
from adapter.tools.top.rows import RowKey
from adapter.tools.top.state import Effect, Mode, Shown, TopState, press

_PATIENCE: Final = 10
"""Times of a round's duration between its end and the next round."""
_ESCAPE: Final = 0.05
"""Seconds after which the byte of Esc is the key, and not the beginning of a sequence."""
_CHUNK: Final = 64
"""Bytes of keys that are read at once: a pasted text does not stop the rest."""
_STYLES: Final = {
    "": RichStyle(),
    "bold": RichStyle(bold=True),
    "dim": RichStyle(dim=True),
    "reverse": RichStyle(reverse=True),
    "good": RichStyle(color="green"),
    "warning": RichStyle(color="yellow"),
    "bad": RichStyle(color="red", bold=True),
    "bar": RichStyle(color="cyan"),
}


def pause_after(took: float, interval: float) -> float:
    """Return the seconds between the end of a round and the next one.

    Args:
        took: seconds of the round.
        interval: the user's.
    """
    return max(interval, _PATIENCE * took)


class _Lines:
    """Lines for rich, without its markup and wrapping."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            for text, style in line:
                yield Segment(text, _STYLES[style])
            yield Segment.line()


class LiveTop:
    """The picture of one cluster, until it is ended.

    Args:
        api: the cluster.
        scope: what is read; with an empty namespace, of all namespaces.
        state: the view at first.
        facts: the first look.
        interval: seconds between two rounds.
    """

    def __init__(
        self, api: Api, scope: ReadScope, state: TopState, facts: ClusterLists, interval: float
    ) -> None:
        self._api = api
        self._scope = scope
        self._state = state
        self._scene = Scene(facts, scope.namespace or api.namespace, api.origin, interval)
        self._screen = screen_of()
        self._painter = Painter(self._screen)
        self._keys = KeyReader()
        self._shown = Shown()
        self._changed = asyncio.Event()
        self._read_now = asyncio.Event()
        self._status: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._explaining: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        console = Console(no_color=not self._screen.colours, highlight=False, markup=False)
        self._live = Live(
            console=console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    async def run(self) -> int:
        """Draw until a key or a signal ends it; return the exit status."""
        descriptor = sys.stdin.fileno()
        with _raw(descriptor) as again, self._live, self._attach_terminal(descriptor, again):
            self._start(self._rounds())
            try:
                while self._status is None:
                    self._draw()
                    await self._changed.wait()
                    self._changed.clear()
                    if self._failure is not None:
                        raise self._failure
                return self._status
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextlib.contextmanager
    def _attach_terminal(self, descriptor: int, again: Callable[[], None]) -> Iterator[None]:
        """Take keys and signals while the block runs."""
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], object]] = {
            signal.SIGWINCH: self._changed.set,
            signal.SIGTERM: lambda: self._end(128 + signal.SIGTERM),
            signal.SIGHUP: lambda: self._end(128 + signal.SIGHUP),
            signal.SIGTSTP: lambda: self._suspend(again),
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        loop.add_reader(descriptor, self._run_callback, lambda: self._input(descriptor))
        try:
            yield
        finally:
            loop.remove_reader(descriptor)
            for number in handlers:
                loop.remove_signal_handler(number)

    def _suspend(self, again: Callable[[], None]) -> None:
        """Leave the terminal to the shell, as Ctrl-Z does, and take it again afterwards."""
        self._live.stop()
        again()
        os.kill(os.getpid(), signal.SIGSTOP)
        again()
        self._live.start()
        self._changed.set()

    def _end(self, status: int) -> None:
        self._status = status
        self._changed.set()

    def _run_callback(self, act: Callable[[], None]) -> None:
        """Run a callback of the event loop; its failure ends the picture."""
        try:
            act()
        except Exception as error:  # it is raised in run()
            self._failure = error
            self._changed.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def forget_task(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                self._failure = task.exception()
                self._changed.set()

        task.add_done_callback(forget_task)
        return task

    def _input(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._end(0)
            return
        self._press(self._keys.feed(data))
        if self._keys.pending:
            loop = asyncio.get_running_loop()
            loop.call_later(_ESCAPE, self._run_callback, lambda: self._press(self._keys.flush()))

    def _press(self, keys: Iterable[str]) -> None:
        for key in keys:
            before = self._state
            self._state, effect = press(self._state, key, self._shown)
            if effect is not None:
                self._apply_effect(effect, before)
            # The next key refers to what this one shows; those of a filter refer to nothing.
            if self._status is None and self._state.mode is not Mode.FILTER:
                self._paint()
        self._changed.set()

    def _apply_effect(self, effect: Effect, before: TopState) -> None:
        if effect is Effect.QUIT:
            self._end(0)
        elif effect is Effect.READ:
            self._reread(before)
        elif effect is Effect.HELP:
            self._scene = replace(self._scene, text=HELP.splitlines())
        elif effect is Effect.PROBLEMS:
            texts = self._scene.facts.texts or ["Every list could be read."]
            self._scene = replace(self._scene, text=[line for text in texts for line in (text, "")])
        else:
            self._explain()

    def _reread(self, before: TopState) -> None:
        if before.everywhere != self._state.everywhere:
            namespace = "" if self._state.everywhere else self._scene.namespace
            self._scope = replace(self._scope, namespace=namespace)
            # What was read of other namespaces is no longer what the picture says.
            tables = {name: t for name, t in self._scene.facts.tables.items() if name == "gpus"}
            facts = replace(self._scene.facts, hpas=None, read_hpas=None, problems={}, pasts_at=0.0)
            facts = replace(facts, tables=cast("dict[ListName, ObjectTable]", tables))
            self._scene = replace(self._scene, facts=facts)
        self._read_now.set()

    async def _rounds(self) -> None:
        """Read again and again; a round of another scope is dropped."""
        while True:
            pause = pause_after(self._scene.facts.took, self._scene.interval)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._read_now.wait()
            if self._state.paused and not self._read_now.is_set():
                continue
            self._read_now.clear()
            scope = self._scope
            facts = await look(self._api, scope, LISTS, self._scene.facts)
            if scope == self._scope:
                self._scene = replace(self._scene, facts=facts)
            else:
                self._read_now.set()
            self._changed.set()

    def _explain(self) -> None:
        if self._explaining is not None:
            self._explaining.cancel()
        about = self._painter.about(self._state.at(self._shown.rows))
        if about is None:  # no row is left
            return
        self._scene = replace(self._scene, text=["Reading ..."])
        self._explaining = self._start(self._show_explanation(about))

    async def _show_explanation(self, about: RowKey) -> None:
        width = self._live.console.size.width
        screen = Screen(width=max(width, 40), unicode=self._screen.unicode)
        text = await explanation(self._api, about, screen)
        self._scene = replace(self._scene, text=text)
        self._changed.set()

    def _paint(self) -> list[Line]:
        width, height = self._live.console.size
        picture = self._painter.paint(self._state, self._scene, width, height)
        self._shown = picture.shown
        return picture.lines

    def _draw(self) -> None:
        self._live.update(_Lines(self._paint()), refresh=True)


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[Callable[[], None]]:
    """Give each key at once and without an echo; Ctrl-C and Ctrl-Z stay signals.

    The function that it yields switches to the terminal's own mode, and back.
    """
    mode = termios.tcgetattr(descriptor)
    raw = False

    def switch() -> None:
        nonlocal raw
        raw = not raw
        if raw:
            tty.setcbreak(descriptor)
        else:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)

    switch()
    try:
        yield switch
    finally:
        if raw:
            switch()
