"""Failures to inject: what the HPA would have done if its values had been missing for a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from adapter.figures import age
from adapter.hpa import HpaSpec
from adapter.server.recording.events import Event, PageRead, Recording
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.options import ADAPTER, SERVER, Failure
from adapter.tools.replay.syncs import RecordedSync, Syncs


class BlindTime(NamedTuple):
    """When the HPA does not see what it would see. Epoch seconds."""

    start: float
    """From here on, values are old ones."""
    blind: float
    """From here on, there are none."""
    end: float


def outage_of(
    failure: Failure,
    recording: Recording,
    spec: HpaSpec,
    period: float,
    index: int,
    syncs: Sequence[RecordedSync],
    work: Sequence[RecordedDemand],
) -> BlindTime:
    """Read the recording again without the pages that fail, and find what the HPA sees.

    Args:
        period: seconds between two syncs.
        index: of the HPA's metric that is replayed.
        syncs: of the whole recording.
        work: the demand at each of them.

    Raises:
        ClientError: the recording does not have that time.
        RecordingError: the recording cannot be read.
    """
    start = _steepest_rise(work, failure.seconds) if failure.start is None else failure.start
    end = start + failure.seconds
    if not work[0].time <= start < end <= work[-1].time:
        first, last = (datetime.fromtimestamp(demand.time, UTC) for demand in (work[0], work[-1]))
        fix = "give a shorter time" if failure.start is None else "give a time in between"
        begun = f" from {datetime.fromtimestamp(start, UTC):%F %H:%M} on"
        begun = begun if failure.start is not None else ""
        raise ClientError(
            f"--fail takes {age(failure.seconds)}{begun}, and the recording is from "
            f"{first:%F %H:%M} to {last:%F %H:%M} UTC: {fix}"
        )
    if failure.kind == ADAPTER:
        return BlindTime(start, start, end)
    events = _drop_pages(recording.events(), serves=failure.kind == SERVER, start=start, end=end)
    whole = {sync.time: sync.seen.values[index] for sync in syncs if start <= sync.time < end}
    blind = sighted = None
    differs = False
    for sync in Syncs(spec, period).of(events):
        if sync.time < start:
            continue
        sees = _sees(sync, index)
        differs = differs or (sync.time < end and whole.get(sync.time) != sync.seen.values[index])
        if blind is None and not sees:
            blind = sync.time
        if sees and sync.time >= end:
            sighted = sync.time
            break
    if not differs:  # the pages that fail are others than those of the metric
        return BlindTime(start, start, start)
    # Without a sync that has no value, old values bridge all of the time.
    sighted = work[-1].time if sighted is None else sighted
    return BlindTime(start, sighted if blind is None else min(blind, sighted), sighted)


def _drop_pages(
    events: Iterable[Event], *, serves: bool, start: float, end: float
) -> Iterator[Event]:
    for event in events:
        missing = isinstance(event, PageRead) and event.result.serves == serves
        if not (missing and start <= event.time < end):
            yield event


def _sees(sync: RecordedSync, index: int) -> bool:
    values = sync.seen.values[index]
    return isinstance(values, Mapping) and bool(values)


def _steepest_rise(work: Sequence[RecordedDemand], seconds: float) -> float:
    """Return the time of a sync after which the demand rises most within the failure.

    Of several, it is the last: a rise at the end of the failure would hardly show.
    """
    best, rise = work[0].time, -1
    falling: deque[RecordedDemand] = deque()
    """Of the syncs within ``seconds`` after the present one, those that no later one exceeds."""
    for demand in reversed(work):
        while falling and falling[0].time > demand.time + seconds:
            falling.popleft()
        if demand.total is None:
            continue
        while falling and (falling[-1].total or 0) <= demand.total:
            falling.pop()
        falling.append(demand)
        if demand.time + seconds <= work[-1].time and (falling[0].total or 0) - demand.total > rise:
            best, rise = demand.time, (falling[0].total or 0) - demand.total
    return best
