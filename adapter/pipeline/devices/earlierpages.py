"""What a counter was before the first page that has it: 0, if the pages before can show that.

Servers and gateways write a series with the first event that it counts, and clients choose some
labels: the flow of an endpoint picker, the customer of SGLang, the model of a frontend. If such a
series counted from its second page on, a customer with one page would never count. So a series that
is not on a page is 0 there, and on the pages before, if all of this is true:

- The page was read in full, directly from the server, and the series was read for. A store, a
  recording, a page that was cut or that is beyond a limit, and the first page of a server show
  nothing of what they do not have. A sample that was left out for its number was on the page.
- The series is one of the catalogue whose program counts its own requests
  (:attr:`adapter.pipeline.catalog.field.Spelling.from_zero`). A user's own series and those of Ray
  may begin with a past. What a router repeats of its servers is not read at all
  (:func:`adapter.pipeline.devices.identity.identify`).
- That page has a series of the server. One that has only those of a user's own rows may come from
  the proxy beside it, while the server starts.
- No earlier page had the series. One that was absent from some pages, for at most
  :func:`kept_seconds`, continues from its last number: a port may answer for several processes in
  turn.

If the server has restarted between the two pages, the number has been counted since, as for every
counter that falls. ``_created`` samples would say the same, but few of these programs write them:
Python's client writes none for several processes, and Go's writes them in OpenMetrics only. So they
are not read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
from math import inf
from typing import Final, NamedTuple

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.servermeasures import WINDOW
from adapter.pipeline.devices.history import NO_SAMPLES, Frame, History
from adapter.pipeline.devices.options import MAX_SAMPLES, TelemetryOptions
from adapter.pipeline.devices.series import NO_FIELDS, DeviceSeries, SeriesKey


class EarlierPages(NamedTuple):
    """What the last pages of a server show of series that they do not have."""

    times: tuple[float, ...]
    """Epoch seconds of the pages, ascending."""
    whole: float
    """Epoch seconds of the newest page that was read in full; minus infinity for none."""
    sought: Container[str]
    """The series names that this page was read for."""
    rejected: frozenset[str]
    """Fields of which this page has a sample that was left out for its number."""
    gone: Mapping[SeriesKey, History]
    """Parts of the server that are no longer on its page -> their samples."""
    blind: float = -inf
    """Epoch seconds until which no page is evidence: see :func:`forget_pages`."""

    def before(
        self,
        key: SeriesKey,
        frames: Mapping[float, Frame],
        earlier: History | None,
        options: TelemetryOptions,
    ) -> History | None:
        """Return the samples of a part before its page, with the zeros of new counters.

        None if there are none.

        Args:
            frames: what its page says of it.
            earlier: its samples on the pages before; None if the last page does not have it.
        """
        samples = self.gone.get(key) if earlier is None else earlier
        if self.whole == -inf or len(frames) != 1:
            return samples
        ((time, frame),) = frames.items()
        unseen = frame.keys() if samples is None else frame.keys() - samples.layout.columns
        fields = {} if samples is None else samples.layout.of_field
        new = [s for s in unseen if s.field.name not in fields and self._began_at_zero(s)]
        if not new or time <= self.whole:
            return samples
        zeros = {at: dict.fromkeys(new, 0.0) for at in self.times if at <= self.whole}
        kept = kept_seconds(options)
        return (NO_SAMPLES if samples is None else samples).with_frames(zeros, kept, kept)

    def _began_at_zero(self, spelling: Spelling) -> bool:
        return (
            spelling.from_zero
            and spelling.field.name not in self.rejected
            and spelling.series.partition("{")[0] in self.sought
        )


NO_EARLIER_PAGES: Final = EarlierPages((), -inf, (), NO_FIELDS, {})


def kept_seconds(options: TelemetryOptions) -> float:
    """Return the seconds of pages that a counter of the catalogue needs."""
    return max(options.window, options.oldest, WINDOW)


def forget_pages(time: float, options: TelemetryOptions) -> EarlierPages:
    """Return pages of which not all parts are known: until the unknown ones would have been
    forgotten, a part that appears may be one that returns, and none counts from 0."""
    return NO_EARLIER_PAGES._replace(blind=time + kept_seconds(options))


def pages_with(
    pages: EarlierPages,
    sought: Container[str] | None,
    times: Set[float],
    rejected: frozenset[str],
    before: Mapping[SeriesKey, DeviceSeries],
    now: Mapping[SeriesKey, DeviceSeries],
    options: TelemetryOptions,
) -> EarlierPages:
    """Return the pages with one more.

    Args:
        pages: those of the same pod before.
        sought: see :class:`adapter.pipeline.exposition.samples.ScrapeResult`, of the page.
        times: epoch seconds of its samples.
        rejected: fields of which it has a sample that was left out for its number.
        before: the parts of the server on the page before.
        now: the same on this page.
    """
    if len(times) != 1:  # the samples have timestamps of their own
        return NO_EARLIER_PAGES
    (time,) = times
    if pages.times and time <= pages.times[-1]:  # the clock was set back
        pages, before = NO_EARLIER_PAGES, {}
    since = time - kept_seconds(options)
    gone = {
        key: samples
        for key, samples in pages.gone.items()
        if samples.newest > since and key not in now
    }
    for key in before.keys() - now.keys():
        samples = before[key].history.from_zero()
        if samples.times:  # a gauge that is no longer on the page has no value any more
            gone[key] = samples
    if len(gone) + len(now) > 2 * options.server_series:
        return forget_pages(time, options)  # too many to know which of them return
    kept = tuple(at for at in pages.times if at > since)[1 - MAX_SAMPLES :]
    if sought is None or time < pages.blind:
        return pages._replace(times=(*kept, time), gone=gone)
    return EarlierPages((*kept, time), time, sought, rejected, gone)
