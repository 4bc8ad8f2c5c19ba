"""Reads the idle pods again when others are idle, or after a while."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec

from adapter.tools.client.errors import ClientError
from adapter.tools.idle.prices import PriceList
from adapter.tools.idle.report import IdleReport
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.idlelist import IdleCandidates, read_idle
from adapter.tools.ui.parts import PageParts

_SELDOM: Final = 60.0
"""Seconds after which the same pods are read again."""
_PAUSE: Final = 10.0
"""Seconds between two readings, at least."""


class IdleWatch:
    """Publishes the part ``idle``.

    Args:
        connection: the cluster.
        parts: where it is published.
        prices: prices of GPUs.
        team_label: label of pods that names their team.
        idle_after: seconds for which a device is idle.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        parts: PageParts,
        prices: PriceList,
        team_label: str,
        idle_after: float,
    ) -> None:
        self._connection = connection
        self._parts = parts
        self._prices = prices
        self._team_label = team_label
        self.idle_after = idle_after
        self._wanted: IdleCandidates | None = None
        self._changed = asyncio.Event()
        self.report: IdleReport | None = None
        """The last one; None before the first."""

    def want(self, candidates: IdleCandidates) -> None:
        """Set which pods seem idle."""
        if self._wanted is None or candidates.pods != self._wanted.pods:
            self._changed.set()
        self._wanted = candidates

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SELDOM):
                    await self._changed.wait()
            self._changed.clear()
            if self._wanted is not None:
                await self._read(self._wanted)
                await asyncio.sleep(_PAUSE)

    async def _read(self, candidates: IdleCandidates) -> None:
        api = self._connection.api
        error = ""
        try:
            self.report = await read_idle(
                api, candidates, self._prices, self._team_label, self.idle_after
            )
        except ClientError as failure:
            error = str(failure)
        body = self.report.idle_json() if self.report is not None else {"devices": []}
        content = body | {"left": candidates.left, "error": error}
        self._parts.publish("idle", msgspec.json.encode(content))
