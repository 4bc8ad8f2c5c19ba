"""Ask the Prometheus of the settings about the exporters' series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from adapter.doctor import servedmetrics
from adapter.doctor.facts import StoreAnswer, UnreadError
from adapter.doctor.fetch import DirectFetcher, Fetched, Fetcher, Place
from adapter.settings import Settings

_MOST: Final = 32 << 20
_WINDOW: Final = 300
_REFUSED: Final = "not allowed"
"""The API server forwards nothing to loopback and link-local addresses."""
_UTIL: Final = tuple(sorted(servedmetrics.CATALOG.groups["utilization"]))


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
        found = frozenset(row.metric.get("__name__", "") for row in series)
        counts = await query(_counts(found & set(_UTIL), prometheus.matchers)) if found else []
        intervals = _intervals(counts)
    except _FailedError as error:
        return StoreAnswer(shown, str(error))
    return StoreAnswer(
        shown,
        "",
        [row.metric for row in series],
        found,
        intervals,
    )


def _counts(names: Iterable[str], matchers: str) -> str:
    """Return the query for the samples of each instance within the window.

    A series counts only if it is there now and was there when the window began: that of a new
    pod, or of a target that is new, has fewer samples than its interval gives. Each name has its
    own selector, because ``count_over_time`` drops the name, and two series may not be the same.
    """
    terms = []
    for name in sorted(names):
        chosen = f"{name}{{{matchers}}}"
        counted = f"count_over_time({chosen}[{_WINDOW}s])"
        terms.append(f"({counted} and {chosen} and {chosen} offset {_WINDOW}s)")
    return f"max by (instance) ({' or '.join(terms)})"


def _intervals(counts: list[_Result]) -> Mapping[str, float]:
    """Return the mean interval of each instance."""
    found = {}
    for row in counts:
        try:
            number = float(row.value[1])
        except (IndexError, TypeError, ValueError):
            text = f"answers with a sample that is not a time and a number: {str(row.value)[:100]}"
            raise _FailedError(text) from None
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
    if answer.unread and _REFUSED in answer.error:
        raise UnreadError(f"Prometheus was not asked: {answer.error}")
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
