"""Ask the Prometheus of the settings about the exporters' series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from adapter.doctor import known
from adapter.doctor.facts import StoreAnswer, UnreadError
from adapter.doctor.fetch import DirectFetcher, Fetched, Fetcher, Place
from adapter.settings import Settings

_MOST: Final = 32 << 20
_WINDOW: Final = 300
_UTIL: Final = tuple(sorted(known.CATALOG.groups["utilization"]))


class _Result(msgspec.Struct):
    metric: dict[str, str] = {}
    value: list[Any] = []


class _Data(msgspec.Struct):
    result: list[_Result] = []


class _Response(msgspec.Struct):
    status: str = ""
    error: str = ""
    data: _Data = msgspec.field(default_factory=_Data)


class _FailedError(Exception):
    """The store does not answer a query; the text says why."""


async def ask(settings: Settings, fetcher: Fetcher, direct: DirectFetcher) -> StoreAnswer:
    """Return what the store says.

    Raises:
        UnreadError: the store needs credentials that only the adapter has.
        ClientError: the caller may not use the API server's proxy.
    """
    prometheus = settings.source.prometheus
    url = str(prometheus.url).rstrip("/")
    secret = prometheus.username or prometheus.bearer_token_file or prometheus.cert_file
    if secret or prometheus.headers or prometheus.auth.kind != "none":
        raise UnreadError("Prometheus needs the credentials of the adapter; see its log")
    shown = f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}"
    names = "|".join(_UTIL)
    matchers = f",{prometheus.matchers}" if prometheus.matchers else ""
    selector = f'{{__name__=~"{names}"{matchers}}}'

    async def query(text: str) -> list[_Result]:
        answer = await _fetch(f"{url}/api/v1/query?query={quote(text)}", fetcher, direct)
        return _read(answer)

    try:
        series = await query(selector)
        counts = await query(f"max by (instance) (count_over_time({selector}[{_WINDOW}s]))")
    except _FailedError as error:
        return StoreAnswer(shown, str(error))
    return StoreAnswer(
        shown,
        "",
        [row.metric for row in series],
        frozenset(row.metric.get("__name__", "") for row in series),
        _intervals(counts),
    )


def _intervals(counts: list[_Result]) -> Mapping[str, float]:
    """Return the mean interval of each instance; a store that has just started knows none."""
    found = {}
    for row in counts:
        number = float(row.value[1]) if len(row.value) == 2 else 0.0
        if number >= 1:
            found[row.metric.get("instance", "")] = _WINDOW / number
    return found


def place_of(url: str) -> Place | None:
    """Return the Service that a URL inside the cluster names; None for another address."""
    parts = urlsplit(url)
    labels = (parts.hostname or "").split(".")
    inside = len(labels) == 2 or (len(labels) > 2 and labels[2] == "svc")
    if not inside or labels[1].isdigit():
        return None
    return Place("services", labels[1], labels[0], url)


async def _fetch(url: str, fetcher: Fetcher, direct: DirectFetcher) -> Fetched:
    place = place_of(url)
    if place is None or isinstance(fetcher, DirectFetcher):
        return await direct.read(url, _MOST)
    return await fetcher.fetch(place, _MOST)


def _read(answer: Fetched) -> list[_Result]:
    if answer.status == 0:
        raise _FailedError(f"does not answer: {answer.error}")
    try:
        found = msgspec.json.decode(answer.body, type=_Response)
    except msgspec.MsgspecError:
        text = f"answers with status {answer.status}, and not as the Prometheus query API"
        raise _FailedError(text) from None
    if answer.status != 200 or found.status != "success":
        raise _FailedError(f"rejects queries with status {answer.status}: {found.error[:200]}")
    return found.data.result
