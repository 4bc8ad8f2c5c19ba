"""The past of HPAs as ``serve`` has kept it: a point a minute, from the view API."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from adapter.tools.client.access import Api
from adapter.tools.client.errors import VIEW, ClientError
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.wire import instant

SHOWN: Final = 30
"""Minutes that a list or an explanation shows."""
_PREFIX: Final = "horizontalpodautoscaler."
_FIELDS: Final = "of=HorizontalPodAutoscaler"
_LONGEST: Final = 3000
"""Minutes of one HPA that are read; ``serve`` keeps 25 hours."""
MOST: Final = 5000
"""HPAs whose past is read."""

Points = list[float | None]
HpaName = tuple[str, str]
"""Namespace and name."""


class HpaPast(NamedTuple):
    """An HPA over time. None stands for a minute that is not known."""

    metric: str
    """Of value and target; empty if the HPA has none."""
    time: list[float]
    """Epoch seconds of each point."""
    value: Points
    target: Points
    current: Points
    desired: Points
    state: list[str | None]

    def last(self, minutes: int, now: float) -> HpaPast:
        """Return the points of the newest minutes, with each minute that is missing."""
        first = next(
            (index for index, time in enumerate(self.time) if time > now - minutes * 60), None
        )
        gone = len(self.time) if first is None else first
        return HpaPast(
            self.metric,
            self.time[gone:],
            self.value[gone:],
            self.target[gone:],
            self.current[gone:],
            self.desired[gone:],
            self.state[gone:],
        )

    def states(self) -> Counter[str]:
        """Return state -> minutes."""
        return Counter(state for state in self.state if state)


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _History(msgspec.Struct):
    """A ``gpuhistory``, as far as it is about an HPA."""

    metadata: _Metadata
    metric: str = ""
    start: str = ""
    intervalSeconds: int = 60  # noqa: N815 - as in the API
    value: Points = []
    target: Points = []
    current: Points = []
    desired: Points = []
    state: list[str | None] = []


_decode = msgspec.json.Decoder(_History).decode


async def read_histories(api: Api, within: str = "") -> dict[HpaName, HpaPast]:
    """Return the last hour of every HPA that ``serve`` has noted.

    Args:
        api: the cluster.
        within: ``/namespaces/NAME``; empty for the whole cluster.

    Raises:
        ClientError: it cannot be read.
    """
    histories: dict[HpaName, HpaPast] = {}
    async for texts in api.texts(f"{VIEW}{within}/gpuhistories", fields=_FIELDS):
        for text in texts:
            name, past = _read(text, api)
            if past is not None:
                histories[name] = past
        if len(histories) >= MOST:
            break
    return histories


async def read_history(api: Api, namespace: str, name: str) -> HpaPast | None:
    """Return all that ``serve`` has noted of an HPA, a day at most; None if it has nothing.

    Raises:
        ClientError: it cannot be read.
    """
    path = f"{VIEW}/namespaces/{quote(namespace, safe='')}/gpuhistories/"
    _, past = _read(msgspec.json.encode(await api.get(f"{path}{_PREFIX}{quote(name)}")), api)
    return past


def _read(text: bytes | msgspec.Raw, api: Api) -> tuple[HpaName, HpaPast | None]:
    try:
        row = _decode(text)
    except UNREADABLE as error:
        raise ClientError(f"gpuhistories has another form: {error}; server: {api.origin}") from None
    name = row.metadata.namespace, row.metadata.name.removeprefix(_PREFIX)
    start = instant.read(row.start)
    columns = (row.value, row.target, row.current, row.desired, row.state)
    size = len(row.value)
    if start is None or not 0 < size <= _LONGEST or any(len(column) != size for column in columns):
        return name, None
    times = [start + row.intervalSeconds * index for index in range(size)]
    return name, HpaPast(row.metric, times, *columns)
