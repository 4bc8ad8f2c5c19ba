"""What the page asks for beside the stream: points of HPAs, and idle GPUs as CSV."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapter.pipeline.sources.prometheus.seriesreader import SeriesReader
from adapter.tools.client.errors import ClientError
from adapter.tools.client.histories import read_history
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.explanations import Explained
from adapter.tools.ui.history import HpaHistory, as_json
from adapter.tools.ui.idlewatch import IdleWatch
from adapter.tools.ui.prometheusrange import read_range

Json = dict[str, Any]

MOST_NAMES: Final = 200
"""HPAs of one request."""
_LONGEST: Final = 7 * 24 * 60
"""Minutes of one range."""
_AT_ONCE: Final = 4


class PageData:
    """Answers the page.

    Args:
        history: what was seen of HPAs.
        idle: the idle GPUs.
        connection: the cluster, whose adapter keeps a day of each HPA.
        prometheus: reads from a query API in place of it; None: there is none.
    """

    def __init__(
        self,
        history: HpaHistory,
        idle: IdleWatch,
        connection: ClusterConnection,
        prometheus: SeriesReader | None = None,
    ) -> None:
        self._connection = connection
        self._history = history
        self._idle = idle
        self._prometheus = prometheus
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def history(self, names: Sequence[str]) -> bytes:
        """Return the points of HPAs as JSON."""
        copied = self._history.copy(names)
        return await asyncio.to_thread(lambda: msgspec.json.encode(as_json(copied)))

    def idle_csv(self) -> str | None:
        """Return the idle GPUs; None before they were read."""
        report = self._idle.report
        return None if report is None else report.csv()

    async def range(self, hpa: str, minutes: str) -> Explained:
        """Return the points of an HPA of some hours: from Prometheus if there is one, or else from
        what ``serve`` has noted."""
        namespace, slash, name = hpa.partition("/")
        if not (slash and namespace and name and len(hpa) <= 510):
            return Explained(400, {"error": "write hpa=NAMESPACE/NAME"})
        if not (minutes.isascii() and minutes.isdecimal() and 1 <= int(minutes[:9]) <= _LONGEST):
            return Explained(400, {"error": f"write minutes= as a number from 1 to {_LONGEST}"})
        async with self._slots:
            try:
                points = await self._range(namespace, name, int(minutes))
            except ClientError as error:
                return Explained(error.status or 502, {"error": str(error)})
        return Explained(200, {hpa: points})

    async def _range(self, namespace: str, name: str, minutes: int) -> Json:
        if self._prometheus is not None:
            return await read_range(self._prometheus, namespace, name, minutes * 60)
        past = await read_history(self._connection.api, namespace, name)
        if past is None:
            raise ClientError(f"nothing is kept of {namespace}/{name} yet", 404)
        past = past.last(minutes, time.time())
        return {
            "time": past.time,
            "value": past.value,
            "goal": past.target,
            "current": past.current,
            "desired": past.desired,
        }
