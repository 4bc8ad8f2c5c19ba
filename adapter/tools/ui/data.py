"""What the page asks for beside the stream: points of HPAs, and idle GPUs as CSV."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapter.pipeline.sources.prometheus.seriesreader import SeriesReader
from adapter.tools.client.errors import ClientError
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
        prometheus: reads from a query API; None: there is none.
    """

    def __init__(
        self, history: HpaHistory, idle: IdleWatch, prometheus: SeriesReader | None = None
    ) -> None:
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
        """Return the points of an HPA before the page was started, from Prometheus."""
        if self._prometheus is None:
            text = "no Prometheus is configured: start ui with --prometheus URL"
            return Explained(404, {"error": text})
        namespace, slash, name = hpa.partition("/")
        if not (slash and namespace and name and len(hpa) <= 510):
            return Explained(400, {"error": "write hpa=NAMESPACE/NAME"})
        if not (minutes.isascii() and minutes.isdecimal() and 1 <= int(minutes[:9]) <= _LONGEST):
            return Explained(400, {"error": f"write minutes= as a number from 1 to {_LONGEST}"})
        async with self._slots:
            try:
                found = await read_range(self._prometheus, namespace, name, int(minutes) * 60)
            except ClientError as error:
                return Explained(error.status or 502, {"error": str(error)})
        return Explained(200, {hpa: found})
