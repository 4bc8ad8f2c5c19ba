"""Reads the cluster's lists again and again, and publishes what follows from them."""

from __future__ import annotations

import asyncio
import time
import traceback
from pathlib import Path
from typing import Any, Final

import msgspec

from adapter.config.process.output import say
from adapter.figures import count
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.histories import read_histories
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.history import HpaHistory
from adapter.tools.ui.idlelist import candidates
from adapter.tools.ui.idlewatch import IdleWatch
from adapter.tools.ui.memory import release
from adapter.tools.ui.model import Model, PageFacts
from adapter.tools.ui.panels import (
    EVENTS,
    GPUS,
    HEADROOM,
    HPAS,
    PODS,
    POOLS,
    PanelState,
    Reader,
    failed_state,
    namespace_path,
    readers,
)
from adapter.tools.ui.parts import PageParts

_SHARE: Final = 10.0
"""A list that takes long is read so seldom that the server works on it a tenth of the time."""
LONGEST: Final = 120.0
"""Seconds for one list, with all of its pages."""
_SLOWER: Final = 30.0
"""Seconds after which a list that cannot be read is tried again, at most."""
_SLOW: Final = {EVENTS: 10.0, POOLS: 15.0, HEADROOM: 15.0}
"""Seconds between two looks, at least: no event is younger than a controller's sync, and ``serve``
counts pools every 15 s, as `nodepool` plans."""
_GATHER: Final = 0.05
"""Seconds for which lists that arrive together are waited for."""


class PageCollector:
    """Reads each list in its own rhythm: one that fails or takes long does not hold the others.

    Args:
        connection: the cluster.
        model: makes the parts.
        parts: where they are published.
        namespace: the only one that is read; empty: all.
        interval: seconds between the beginnings of two readings of a list.
        history: keeps what HPAs were.
        idle: looks at the pods that seem idle.
        longest: seconds for one list, with all of its pages.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        model: Model,
        parts: PageParts,
        namespace: str,
        interval: float,
        history: HpaHistory,
        idle: IdleWatch,
        longest: float = LONGEST,
    ) -> None:
        self._connection = connection
        self._model = model
        self._parts = parts
        self._interval = interval
        self._history = history
        self._idle = idle
        self._longest = longest
        self._readers = readers(namespace)
        self._within = namespace_path(namespace)
        self._past: dict[str, Any] = {}
        self._panels = {name: PanelState(name) for name in self._readers}
        self._data: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        await self._publish()
        async with asyncio.TaskGroup() as tasks:
            for name, read in self._readers.items():
                tasks.create_task(self._watch(name, read), name=f"read {name}")
            tasks.create_task(self._show(), name="publish")
            tasks.create_task(self._idle.run(), name="read idle pods")
            tasks.create_task(self._read_past(), name="read the past")

    async def _read_past(self) -> None:
        """Read what HPAs were before the page was started, and again if the page has a gap since;
        try again until it can be read."""
        while True:
            if self._past.get("message") == "" and not self._history.gap:
                await asyncio.sleep(self._interval)
                continue
            began = time.monotonic()
            try:
                before = await self._read(lambda api: read_histories(api, self._within))
            except ClientError as error:
                self._past = {"since": None, "message": f"No past: {error.brief}"}
            else:
                self._history.begin(before)
                since = min((past.time[0] for past in before.values()), default=None)
                # The page asks for its points again after each reading.
                self._past = {"since": since, "message": "", "read": time.time()}
            self._parts.publish("past", msgspec.json.encode(self._past))
            # Lists that take long leave a gap after each look.
            pause = _SHARE * (time.monotonic() - began)
            await asyncio.sleep(max(pause, _SLOWER if self._past["message"] else 0.0))

    async def _watch(self, name: str, read: Reader) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            try:
                self._data[name] = await self._read(read)
            except ClientError as error:
                failures += 1
                took = time.monotonic() - began
                self._panels[name] = failed_state(self._panels[name], error, took)
                pause = min(_SLOWER, self._interval * failures)
            else:
                failures = 0
                took = time.monotonic() - began
                note = self._note(name)
                self._panels[name] = PanelState(name, "ok", note, updated=time.time(), took=took)
                pause = self._pause(name, took)
            self._changed.add(name)
            self._wake.set()
            await asyncio.sleep(pause)

    async def _read(self, read: Reader) -> Any:
        api = self._connection.api
        try:
            with odd_answers():
                async with asyncio.timeout(self._longest):
                    return await read(api)
        except TimeoutError:
            raise ClientError(
                f"the list was not complete after {self._longest:g} s: name a namespace with -n, "
                f"or see the API server's own log; server: {api.origin}"
            ) from None
        except ClientError as error:
            if error.status == 401:
                await self._connection.renew(api)
            raise

    def _note(self, name: str) -> str:
        """Return what is left out of a list that could be read."""
        if name != HPAS:
            return ""
        read, left = self._data[HPAS], self._history.left
        parts = [read.left_out] if read.left_out else []
        if left:
            parts.append(f"no points are kept of {count(left, 'HPA')}: there are too many")
        return "; ".join(parts)

    def _pause(self, name: str, took: float) -> float:
        interval = max(self._interval, _SLOW.get(name, 0.0))
        return max(interval - took, _SHARE * took)

    async def _show(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER)
            self._wake.clear()
            try:
                await self._publish()
            except Exception as error:  # a mistake of this program: the page goes on
                frame = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                where = f"{Path(frame.filename).name} line {frame.lineno}"
                line = f"gpu-metrics-adapter: the page is not updated: {text} ({where}); report it"
                say(line, err=True)

    async def _publish(self) -> None:
        changed, self._changed = self._changed, set()
        now = time.time()
        facts = PageFacts(dict(self._panels), dict(self._data))
        if HPAS in changed and facts.panels[HPAS].status == "ok":
            hpas = await asyncio.to_thread(self._model.hpas, facts, now)
            self._history.add(hpas or (), now)
        made = await asyncio.to_thread(self._model.parts, facts, changed, now)
        devices = 0
        for name, content in made.items():
            if name == "gpus":
                devices = self._parts.publish(name, content, numbered=True)
            else:
                of = devices if name == "load" else 0
                self._parts.publish(name, content, of=of)
        if facts.panels[PODS].status == "ok" and changed & {PODS, GPUS}:
            gpus = facts.table(GPUS) if facts.panels[GPUS].status in ("ok", "failed") else None
            self._idle.want(
                await asyncio.to_thread(candidates, gpus, facts.table(PODS), self._idle.idle_after)
            )
        await asyncio.to_thread(release)
