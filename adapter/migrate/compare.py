"""Ask both servers for each metric of each HPA, bounded in requests, bytes and time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.client.access import Api
from adapter.client.errors import ClientError
from adapter.cluster.metricsapi import (
    CUSTOM,
    EXTERNAL,
    OLDER,
    GarbledAnswerError,
    read_values,
    value_path,
)
from adapter.explain.scaletarget import ScaleError, read_scale
from adapter.hpa import MetricKind
from adapter.migrate.comparison import Compared, Comparison, MoveVerdict, judge, shown
from adapter.migrate.hpametrics import HpaUse
from adapter.migrate.servers import MetricsServer

MOST_PATHS: Final = 1000
"""Metrics of HPAs that are compared."""
SECONDS: Final = 300.0
"""Time for all of them."""
_TRIES: Final = 3
"""Rounds until a metric counts as different: a value may change while it is read."""
_PAUSE: Final = 2.0
_AT_ONCE: Final = 4
_DISCOVERY: Final = (f"{CUSTOM}/{OLDER}", EXTERNAL)


class _Ask(NamedTuple):
    """One request, and the HPAs that send it."""

    path: str
    use: HpaUse
    hpas: Sequence[str]


@dataclass
class Comparer:
    """Compares two servers."""

    api: Api
    theirs: MetricsServer
    ours: MetricsServer
    tolerance: float = 10.0
    pause: float = _PAUSE
    seconds: float = SECONDS
    notes: list[str] = field(default_factory=list)
    """Bounds that were reached."""

    async def compare(self, uses: Iterable[HpaUse]) -> Comparison:
        """Ask for each metric; raises ClientError if the first request to a server fails."""
        absent = await self._discovery()
        asks, failed = await self._asks(uses)
        deadline = time.monotonic() + self.seconds
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(ask: _Ask) -> Compared:
            async with turn:
                if time.monotonic() > deadline:
                    return _failed(ask, f"no time left after {self.seconds:.0f} s")
                return await self._one(ask)

        rows = await asyncio.gather(*(one(ask) for ask in asks[:MOST_PATHS]))
        left = [_failed(ask, f"beyond {MOST_PATHS} metrics") for ask in asks[MOST_PATHS:]]
        return Comparison([*rows, *left, *failed], absent, self.notes)

    async def _asks(self, uses: Iterable[HpaUse]) -> tuple[list[_Ask], list[Compared]]:
        """Return one request for each path, and the metrics for which it has no path."""
        found: dict[str, tuple[HpaUse, dict[str, None]]] = {}
        failed = []
        selectors: dict[str, str] = {}
        for use in uses:
            if use.metric.kind.of_resources:
                continue
            try:
                path = await self._path(use, selectors)
            except (ScaleError, KeyError, ValueError, ClientError) as error:
                text = error.brief if isinstance(error, ClientError) else str(error)
                failed.append(_failed(_Ask("", use, [use.key]), text))
                continue
            found.setdefault(path, (use, {}))[1][use.key] = None
        return [_Ask(path, use, sorted(hpas)) for path, (use, hpas) in found.items()], failed

    async def _path(self, use: HpaUse, selectors: dict[str, str]) -> str:
        selector = ""
        if use.metric.kind is MetricKind.PODS:
            if use.key not in selectors:
                selectors[use.key] = (await read_scale(self.api, use.hpa)).selector
            selector = selectors[use.key]
        return value_path(use.metric, selector, use.namespace, OLDER)

    async def _one(self, ask: _Ask) -> Compared:
        verdict, remark, theirs, ours = MoveVerdict.FAILED, "", dict[str, int](), dict[str, int]()
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(self.pause)
            try:
                first = await _values(self.theirs, ask)
                ours = await _values(self.ours, ask)
                theirs = await _values(self.theirs, ask)
            except ClientError as error:
                verdict, remark = MoveVerdict.FAILED, error.brief
                continue
            verdict, remark = judge(first, ours, theirs, self.tolerance)
            if verdict.good:
                break
        use = ask.use
        return Compared(
            use.metric.name,
            str(use.metric.kind),
            use.namespace,
            ask.hpas,
            verdict,
            shown(theirs),
            shown(ours),
            remark,
        )

    async def _discovery(self) -> list[str]:
        """Return the names in their discovery that ours does not have."""
        absent = list[str]()
        for path in _DISCOVERY:
            theirs = await _listed(self.theirs, path)
            ours = await _listed(self.ours, path)
            absent += sorted(theirs - ours)
        return absent


async def _listed(server: MetricsServer, path: str) -> set[str]:
    try:
        answer = await server.get(path)
    except ClientError as error:
        if error.status == 404:  # the API is not served
            return set()
        raise
    rows = answer.get("resources") or ()
    return {str(row.get("name")) for row in rows if isinstance(row, dict)}


async def _values(server: MetricsServer, ask: _Ask) -> dict[str, int]:
    """Return the values of a metric; none if the server does not have it."""
    try:
        values = read_values(await server.get(ask.path))
    except GarbledAnswerError as error:
        raise ClientError(" ".join(str(error).split())[:200]) from None
    except ClientError as error:
        if error.status == 404:
            return {}
        raise
    external = ask.use.metric.kind is MetricKind.EXTERNAL
    if external:
        # The HPA controller adds the series of an external metric.
        return {"sum": sum(value.milli for value in values)} if values else {}
    return {value.name: value.milli for value in values}


def _failed(ask: _Ask, why: str) -> Compared:
    use = ask.use
    none = shown({})
    return Compared(
        use.metric.name,
        str(use.metric.kind),
        use.namespace,
        ask.hpas,
        MoveVerdict.FAILED,
        none,
        none,
        " ".join(why.split())[:300],
    )
