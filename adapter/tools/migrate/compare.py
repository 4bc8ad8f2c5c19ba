"""Ask both servers for each metric of each HPA, bounded in requests, bytes and time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.hpa import MetricKind
from adapter.pipeline.cluster.metricsapi import (
    CUSTOM,
    EXTERNAL,
    NEWEST,
    OLDER,
    GarbledAnswerError,
    read_values,
    value_path,
)
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.scaletarget import ScaleError, read_scale
from adapter.tools.migrate.comparison import (
    Compared,
    Comparison,
    MoveVerdict,
    describe_values,
    judge,
)
from adapter.tools.migrate.hpametrics import HpaUse, describe_metric
from adapter.tools.migrate.servers import MetricsServer

MOST_PATHS: Final = 1000
"""Metrics of HPAs that are compared."""
SECONDS: Final = 300.0
"""Time for all of them."""
_TRIES: Final = 3
"""Rounds until a metric counts as different: a value may change while it is read."""
_PAUSE: Final = 2.0
_AT_ONCE: Final = 4
VERSIONS: Final = (NEWEST, OLDER)
"""Of custom.metrics.k8s.io, in the order in which the HPA controller prefers them."""


class _Ask(NamedTuple):
    """One question, and the HPAs that ask it."""

    theirs: str
    """The path at their version of the API."""
    ours: str
    use: HpaUse
    hpas: Sequence[str]


@dataclass
class Comparer:
    """Compares two servers."""

    api: Api
    theirs: MetricsServer
    ours: MetricsServer
    versions: Sequence[str] = VERSIONS
    """Versions of custom.metrics.k8s.io that may be theirs."""
    tolerance: float = 10.0
    pause: float = _PAUSE
    seconds: float = SECONDS
    notes: list[str] = field(default_factory=list)
    """Bounds that were reached."""

    async def compare(self, uses: Iterable[HpaUse]) -> Comparison:
        """Ask for each metric; raises ClientError if the first request to a server fails."""
        theirs, theirs_named = await _discover_custom_names(self.theirs, self.versions)
        ours, ours_named = await _discover_custom_names(self.ours, VERSIONS)
        theirs_named |= await _discover_names(self.theirs, EXTERNAL) or set()
        ours_named |= await _discover_names(self.ours, EXTERNAL) or set()
        absent = sorted(theirs_named - ours_named)
        asks, failed = await self._asks(uses, theirs, ours)
        deadline = time.monotonic() + self.seconds
        turn = asyncio.Semaphore(_AT_ONCE)

        async def compare_in_turn(ask: _Ask) -> Compared:
            async with turn:
                if time.monotonic() > deadline:
                    return _failed_row(ask, f"no time left after {self.seconds:.0f} s")
                return await self._compare_metric(ask)

        rows = await asyncio.gather(*(compare_in_turn(ask) for ask in asks[:MOST_PATHS]))
        left = [_failed_row(ask, f"beyond {MOST_PATHS} metrics") for ask in asks[MOST_PATHS:]]
        return Comparison([*rows, *left, *failed], absent, self.notes)

    async def _asks(
        self, uses: Iterable[HpaUse], theirs: str, ours: str
    ) -> tuple[list[_Ask], list[Compared]]:
        """Return one question for each path, and the metrics for which it has no path.

        Args:
            uses: the metrics of HPAs.
            theirs: their version of custom.metrics.k8s.io.
            ours: our version.
        """
        by_paths: dict[tuple[str, str], tuple[HpaUse, dict[str, None]]] = {}
        failed = []
        selectors: dict[str, str] = {}
        for use in uses:
            if use.metric.kind.of_resources:
                continue
            try:
                selector = await self._selector(use, selectors)
                paths = (
                    value_path(use.metric, selector, use.namespace, theirs),
                    value_path(use.metric, selector, use.namespace, ours),
                )
            except (ScaleError, KeyError, ValueError, ClientError) as error:
                text = error.brief if isinstance(error, ClientError) else str(error)
                failed.append(_failed_row(_Ask("", "", use, [use.key]), text))
                continue
            by_paths.setdefault(paths, (use, {}))[1][use.key] = None
        return [_Ask(*paths, use, sorted(hpas)) for paths, (use, hpas) in by_paths.items()], failed

    async def _selector(self, use: HpaUse, selectors: dict[str, str]) -> str:
        """Return the selector of the pods that a metric is about; empty for other metrics."""
        if use.metric.kind is not MetricKind.PODS:
            return ""
        if use.key not in selectors:
            selectors[use.key] = (await read_scale(self.api, use.hpa)).selector
        return selectors[use.key]

    async def _compare_metric(self, ask: _Ask) -> Compared:
        verdict, remark, theirs, ours = MoveVerdict.FAILED, "", dict[str, int](), dict[str, int]()
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(self.pause)
            try:
                first = await _values(self.theirs, ask.theirs, ask.use)
                ours = await _values(self.ours, ask.ours, ask.use)
                theirs = await _values(self.theirs, ask.theirs, ask.use)
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
            describe_metric(use.metric),
            use.namespace,
            ask.hpas,
            verdict,
            describe_values(theirs),
            describe_values(ours),
            remark,
        )


async def _discover_custom_names(
    server: MetricsServer, versions: Sequence[str]
) -> tuple[str, set[str]]:
    """Return the version of custom.metrics.k8s.io that a server has, and its list."""
    for version in versions:
        names = await _discover_names(server, f"{CUSTOM}/{version}")
        if names is not None:
            return version, names
    return versions[-1], set()


async def _discover_names(server: MetricsServer, path: str) -> set[str] | None:
    """Return the names in a list of discovery; None if the API is not served."""
    try:
        answer = await server.get(path)
    except ClientError as error:
        if error.status == 404:
            return None
        raise
    rows = answer.get("resources") or ()
    return {str(row.get("name")) for row in rows if isinstance(row, dict)}


async def _values(server: MetricsServer, path: str, use: HpaUse) -> dict[str, int]:
    """Return the values of a metric; none if the server does not have it."""
    try:
        values = read_values(await server.get(path))
    except GarbledAnswerError as error:
        raise ClientError(" ".join(str(error).split())[:200]) from None
    except ClientError as error:
        if error.status == 404:
            return {}
        raise
    external = use.metric.kind is MetricKind.EXTERNAL
    if external:
        # The HPA controller adds the series of an external metric.
        return {"sum": sum(value.milli for value in values)} if values else {}
    return {value.name: value.milli for value in values}


def _failed_row(ask: _Ask, why: str) -> Compared:
    use = ask.use
    none = describe_values({})
    return Compared(
        use.metric.name,
        str(use.metric.kind),
        describe_metric(use.metric),
        use.namespace,
        ask.hpas,
        MoveVerdict.FAILED,
        none,
        none,
        " ".join(why.split())[:300],
    )
