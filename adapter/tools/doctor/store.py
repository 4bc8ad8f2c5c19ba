"""Ask the Prometheus of the settings about the exporters' series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from adapter.config.process.storelogin import store_options
from adapter.config.settings import Settings
from adapter.config.settings.prometheus import PrometheusSettings
from adapter.pipeline.sources.errors import CredentialError, SourceError
from adapter.pipeline.sources.prometheus.refusal import refusal
from adapter.pipeline.sources.prometheus.seriesreader import QueriedSeries, SeriesReader, reader_of
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import StoreAnswer, UnreadError
from adapter.tools.doctor.fetch import SECONDS, DirectFetcher, Fetcher, Place

_MOST: Final = 32 << 20
_WINDOW: Final = 300
_REFUSED: Final = "not allowed"
"""The API server forwards nothing to loopback and link-local addresses."""
_UTIL: Final = tuple(sorted(servedmetrics.CATALOG.groups["utilization"]))


async def ask(settings: Settings, fetcher: Fetcher) -> StoreAnswer:
    """Return what the store says.

    Raises:
        UnreadError: the store needs credentials that this process cannot read or send.
        ClientError: the caller may not use the API server's proxy.
    """
    prometheus = settings.source.prometheus
    url = str(prometheus.url).rstrip("/")
    shown = f"{urlsplit(url).scheme}://{urlsplit(url).netloc.rpartition('@')[2]}"
    reader = _reader(prometheus, fetcher)
    try:
        return await _answer(reader, shown, prometheus.matchers)
    except SourceError as error:
        return StoreAnswer(shown, str(error))
    finally:
        await reader.close()


async def _answer(reader: SeriesReader, shown: str, matchers: str) -> StoreAnswer:
    names = "|".join(_UTIL)
    more = f",{matchers}" if matchers else ""
    selected = await reader.instant(f'{{__name__=~"{names}"{more}}}')
    series_names = frozenset(series.name for series in selected.series)
    known_names = series_names & set(_UTIL)
    counts = (await reader.instant(_counts(known_names, matchers))).series if known_names else []
    labels = [series.labels for series in selected.series]
    return StoreAnswer(shown, "", labels, series_names, _intervals(counts))


def _reader(prometheus: PrometheusSettings, fetcher: Fetcher) -> SeriesReader:
    """Return a reader: with the login of the settings, or through the API server without one."""
    place = place_of(str(prometheus.url))
    if place is not None and not isinstance(fetcher, DirectFetcher):
        if _needs_credentials(prometheus):
            raise UnreadError(
                "Prometheus needs credentials, which the API server does not forward: run doctor "
                "in the adapter's pod, or see its log"
            )
        return SeriesReader(_Forwarded(place, fetcher))
    try:
        return reader_of(replace(store_options(prometheus), timeout=SECONDS, max_bytes=_MOST))
    except CredentialError as error:
        raise UnreadError(
            f"Prometheus needs credentials that are not on this machine ({error}): run doctor in "
            "the adapter's pod, or see its log"
        ) from None


def _needs_credentials(prometheus: PrometheusSettings) -> bool:
    secret = prometheus.username or prometheus.bearer_token_file or prometheus.cert_file
    return bool(secret or prometheus.headers or prometheus.auth.kind != "none")


class _Forwarded:
    """Sends queries through the API server (:class:`.seriesreader.QueryPort`)."""

    def __init__(self, place: Place, fetcher: Fetcher) -> None:
        self.url = place.url.rstrip("/")
        self._place = place
        self._fetcher = fetcher

    async def fetch(self, path: str, form: Mapping[str, str]) -> bytes:
        """See the port; raises UnreadError if the API server does not forward the request."""
        url = f"{self.url}/api/v1/{path}?{urlencode(form, quote_via=quote)}"
        answer = await self._fetcher.fetch(self._place._replace(url=url), _MOST)
        if answer.unread and _REFUSED in answer.error:
            raise UnreadError(f"Prometheus was not asked: {answer.error}")
        if answer.status == 0:
            raise SourceError("connect", f"does not answer: {answer.error}")
        if not answer.complete:
            raise SourceError("too_large", f"the answer is above {_MOST} bytes")
        if answer.status != 200:
            raise refusal(answer.status, answer.body)
        return answer.body

    def hide_credentials(self, error: SourceError) -> SourceError:
        """See the port: there are no credentials."""
        return error

    async def close(self) -> None:
        """See the port."""


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


def _intervals(counts: Iterable[QueriedSeries]) -> Mapping[str, float]:
    """Return the mean interval of each instance."""
    return {
        series.labels.get("instance", ""): _WINDOW / series.points[-1][1]
        for series in counts
        if series.points[-1][1] >= 1
    }


def place_of(url: str) -> Place | None:
    """Return the Service that a URL inside the cluster names; None for another address."""
    parts = urlsplit(url)
    labels = (parts.hostname or "").split(".")
    inside = len(labels) == 2 or (len(labels) > 2 and labels[2] == "svc")
    if not inside or labels[1].isdigit():
        return None
    return Place("services", labels[1], labels[0], url)
