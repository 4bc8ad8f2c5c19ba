"""Read the history that another replica has kept, once after the start.

The request goes through the API server to the adapter's own Service. While this process is not
ready, the Service has the other replicas only; in a rolling update, that is the one before it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
import structlog

from adapter.answers.history.hours import HourError, StoredHour
from adapter.answers.history.ring import HistoryRing
from adapter.pipeline.cluster.metricsapi import VIEW_GROUP

log = structlog.get_logger(__name__)

PATH: Final = f"/apis/{VIEW_GROUP}/v1alpha1/gpuhistoryhours?limit=1"
_PAGES: Final = 32
"""Pages that are read: an hour each, of 25."""
_TRIES: Final = 20
_PAUSE: Final = 3.0
"""Seconds between two tries."""
MOST_BYTES: Final = 16 << 20
"""Bytes of an answer: an hour takes a part of the 8 MiB of a history."""


class _Metadata(msgspec.Struct):
    token: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[StoredHour]


_decode = msgspec.json.Decoder(_Page).decode


class PastReader:
    """Reads the hours of another replica.

    Args:
        ask: returns the answer of a path; raises ClusterAnswerError.
        ring: where they are put.
        clock: epoch seconds.
    """

    def __init__(
        self,
        ask: Callable[[str], Awaitable[bytes]],
        ring: HistoryRing,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ask = ask
        self._ring = ring
        self._clock = clock

    async def run(self) -> None:
        """Read the hours of another replica, and wait until cancelled."""
        await self.take()
        await asyncio.Event().wait()

    async def take(self) -> None:
        """Read the hours of another replica; without one, give up after a minute."""
        why = ""
        for _ in range(_TRIES):
            try:
                hours = await self._read()
            except PastUnread as error:
                why = str(error)
                await asyncio.sleep(_PAUSE)
            else:
                log.info("took the history of another replica", hours=hours)
                break
        else:
            log.info("no history of another replica", reason=why)

    async def _read(self) -> int:
        """Return the number of hours that were read; raises PastUnread."""
        from apiservice.kube.client import ClusterAnswerError  # noqa: PLC0415 - 35 MB

        token = ""
        hours = 0
        try:
            for _ in range(_PAGES):
                path = f"{PATH}&continue={quote(token)}" if token else PATH
                page = _decode(await self._ask(path))
                for hour in page.items:
                    self._ring.take(hour, self._clock())
                    hours += 1
                    await asyncio.sleep(0)
                token = page.metadata.token
                if not token:
                    break
        except (ClusterAnswerError, msgspec.MsgspecError, HourError) as error:
            raise PastUnread(str(error)) from None
        return hours


class PastUnread(Exception):  # noqa: N818 - a state, and no mistake
    """The history of another replica cannot be read; the message says why."""


def past_reader(client: Any, ring: HistoryRing | None) -> PastReader | None:
    """Return the reader; None without a cluster, or if the view API is off."""
    if client is None or ring is None:
        return None
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    return PastReader(partial(call, client, "GET", most=MOST_BYTES), ring)
