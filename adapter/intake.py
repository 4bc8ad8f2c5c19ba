"""From an exporter's rows to its tracks: names, units, ranges, labels, duplicates.

Pure but for the counting of rejects: the same batches in any order of rows make the same
exporter. Its cost is proportional to the batch, whatever else the store holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from adapter.batch import Batch, Row
from adapter.catalog import Catalog
from adapter.cluster.pod import PodRef
from adapter.crosschecks import cross_checked
from adapter.draft import Draft, Holders, folded, holders, per_process, superseded
from adapter.exporter import Exporter, Identity, Track, TrackKey
from adapter.history import history
from adapter.identity import identify, nameless
from adapter.idlepower import IdlePower
from adapter.metric import Mig, Spelling
from adapter.parts import Parts
from adapter.rejects import Reject, Rejects
from adapter.telemetryoptions import TelemetryOptions
from adapter.validity import SENTINELS, Invalid, RatioScale, complaint, percent_of, scale_shown

FUTURE = "future_timestamp"
STALE = "stale_sample"
DUPLICATE = "duplicate_series"
INVALID_ON_MIG = "invalid_on_mig"
TOO_MANY = "too_many_devices"


def absorb(
    before: Exporter | None,
    batch: Batch,
    catalog: Catalog,
    options: TelemetryOptions,
    rejects: Rejects,
    idle: IdlePower,
) -> Exporter:
    """An exporter's state after a batch.

    A track that the batch lacks stands until the age limit (labels come and go:
    dcgm-exporter#428). One whose device the batch gives to another pod is marked superseded:
    :mod:`adapter.sharing` knows whether the two share it.
    """
    reading = _Reading(before, batch, catalog, options, rejects, idle)
    reading.read(batch.rows)
    reading.read(reading.forked)
    reading.settle_ratios()
    return reading.exporter()


class _Reading:
    """The work on one batch."""

    def __init__(
        self,
        before: Exporter | None,
        batch: Batch,
        catalog: Catalog,
        options: TelemetryOptions,
        rejects: Rejects,
        idle: IdlePower,
    ) -> None:
        self._before = before
        self._batch = batch
        self._catalog = catalog
        self._options = options
        self._rejects = rejects
        self._idle = idle
        self._scale = before.scale if before else RatioScale.AUTO
        self._drafts: dict[int, Draft | None] = {}
        self._identities: dict[int, Identity] = {}
        self._by_key: dict[TrackKey, Draft] = {}
        self._reported: set[str] = set()
        self._ratios: list[tuple[Draft, Spelling, float, float]] = []
        self._parts = Parts()
        self.forked: list[Row] = []
        """Rows read so far that stand once more for every field that their labels tell."""
        self._exporter_pod = PodRef(*batch.pod) if batch.pod else before.pod if before else None

    def read(self, rows: Iterable[Row]) -> None:
        """Take every row of the catalogue. This loop is the cost of a scrape."""
        spellings, drafts, reported = self._catalog.spellings, self._drafts, self._reported
        received = self._batch.received
        stale = received - self._options.oldest
        for name, labels, value, time in rows:
            spelling = spellings.get(name)
            if spelling is None:
                self.forked += self._forks(name, labels, value, time)
                continue
            # No address is negative: the same labels may stand for a device and for a server.
            address = -id(labels) if spelling.server else id(labels)
            if address in drafts:
                draft = drafts[address]
            else:
                draft = drafts[address] = self._draft(address, labels, spelling)
            if draft is None:
                reason = TOO_MANY if self._full else nameless(spelling, self._batch)
                self._rejects.count(reason)
                continue
            if draft.mig:
                if spelling.field.mig is Mig.INVALID:
                    self._rejects.count(INVALID_ON_MIG)
                    continue
            else:
                reported.add(spelling.field.name)
            measured = time if stale < time <= received else self._odd_time(time)
            if spelling.special:
                self._put_aside(draft, spelling, labels, value, measured)
            elif spelling.low <= value <= spelling.high and value not in SENTINELS:
                if not draft.put(spelling, value * spelling.factor, measured):
                    self._rejects.count(DUPLICATE)
            else:
                wrong = complaint(value, spelling.low, spelling.high)
                self._reject(draft, spelling, wrong or Invalid.OUT_OF_RANGE, value)

    def _forks(
        self, name: str, labels: Mapping[str, str], value: float, time: float
    ) -> Iterator[Row]:
        """The row once for each field that its labels make it one of."""
        for alias, spelling in self._catalog.forks.get(name, ()):
            if spelling.fits(labels):
                yield Row(alias, labels, value, time)

    def _put_aside(
        self,
        draft: Draft,
        spelling: Spelling,
        labels: Mapping[str, str],
        value: float,
        time: float,
    ) -> None:
        """Keep a row whose meaning the rest of the page decides."""
        if spelling.traps:
            self._ratios.append((draft, spelling, value, time))
            return
        wrong = complaint(value, spelling.low, spelling.high)
        if wrong is not None:
            self._reject(draft, spelling, wrong, value)
        elif not self._parts.add(draft, spelling, labels, value * spelling.factor, time):
            self._rejects.count(DUPLICATE)

    def settle_ratios(self) -> None:
        """Read the ``_RATIO`` rows, whose scale only the whole page can tell."""
        sound = []
        for draft, spelling, value, time in self._ratios:
            wrong = complaint(value, 0.0, 100.0)
            if wrong is not None:
                self._reject(draft, spelling, wrong, value)
            else:
                sound.append((draft, spelling, value, time))
        if self._options.ratio_scale is RatioScale.AUTO:
            self._scale = scale_shown((value for _, _, value, _ in sound), self._scale)
        else:
            self._scale = self._options.ratio_scale
        for draft, spelling, value, time in sound:
            percent = percent_of(value, self._scale)
            if isinstance(percent, Invalid):
                self._reject(draft, spelling, percent, value)
            elif not draft.put(spelling, percent, time):
                self._rejects.count(DUPLICATE)

    def exporter(self) -> Exporter:
        """The state after the batch."""
        self._learn_target()
        self._parts.settle()
        self._by_key = folded(self._by_key)
        past = superseded(self._by_key)
        batch, before, oldest = self._batch, self._before, self._options.oldest
        reported = {
            name: time
            for name, time in (before.reported if before else {}).items()
            if time > batch.received - oldest
        } | dict.fromkeys(self._reported, batch.received)
        names, held = frozenset(reported), holders(self._by_key.keys() - past)
        split = per_process(self._by_key, self._rejects)
        tracks = {
            key: self._track(
                key, draft, names, held, per_process=key.device in split, past=key in past
            )
            for key, draft in self._by_key.items()
        }
        if self._options.cross_checks:
            tracks = cross_checked(tracks, before, self._options, self._idle, self._rejects)
        tracks = self._standing(tracks, held) | tracks
        return Exporter(
            origin=batch.origin,
            received=batch.received,
            pod=self._exporter_pod,
            tracks=tracks,
            reported=reported,
            scale=self._scale,
            identities=self._identities,
        )

    @property
    def _full(self) -> bool:
        return len(self._by_key) >= self._options.max_tracks

    def _draft(self, address: int, labels: Mapping[str, str], spelling: Spelling) -> Draft | None:
        if self._full:
            return None
        known = self._before.identities.get(address) if self._before else None
        if known is None or known.labels is not labels:
            known = identify(labels, spelling, self._batch, self._exporter_pod)
        identity = self._identities[address] = known
        if identity.device is None:
            return None
        key = identity.key
        draft = self._by_key.get(key)
        if draft is None:
            draft = self._by_key[key] = Draft(identity)
        draft.replica = draft.replica or identity.replica
        return draft

    def _odd_time(self, time: float) -> float:
        if time > self._batch.received:
            self._rejects.count(FUTURE)
            return self._batch.received
        self._rejects.count(STALE)
        return time

    def _reject(self, draft: Draft, spelling: Spelling, reason: Invalid, value: float) -> None:
        at = draft.identity.device
        reject = Reject(reason, spelling.name, at.id if at else "")
        self._rejects.add(reject, self._batch.received, value)

    def _learn_target(self) -> None:
        """The exporter's own pod, from a row that names it beside a workload."""
        if self._exporter_pod is None:
            found = {i.target for i in self._identities.values() if i.target is not None}
            self._exporter_pod = found.pop() if len(found) == 1 else None

    def _track(
        self,
        key: TrackKey,
        draft: Draft,
        reported: frozenset[str],
        held: Holders,
        *,
        per_process: bool,
        past: bool,
    ) -> Track:
        window, oldest = self._options.window, self._options.oldest
        earlier = self._before.tracks.get(key) if self._before else None
        if earlier is not None:
            window = self._catalog.span(earlier.history.layout, window, oldest)
        if earlier is not None and draft.frames:
            samples = earlier.history.extended(draft.frames, window, oldest)
        else:
            samples = earlier.history if earlier else history(draft.frames, window, oldest)
        if samples.newest > self._batch.received:
            # The clock was set back: what came before would pass for new until it catches up.
            samples = history(draft.frames, window, oldest)
        at, claimed = draft.identity.device, draft.identity.claim
        assert at is not None  # noqa: S101 - a draft without a device is never made
        if claimed is not None and not claimed.serves and claimed.pod == self._exporter_pod:
            claimed = claimed._replace(suspect=True)
        return Track(
            device=at,
            claim=claimed,
            origin=self._batch.origin,
            node=self._batch.node,
            host=draft.identity.host,
            received=self._batch.received,
            history=samples,
            reported=reported,
            window=self._options.window,
            shared=key.pod is not None
            and not past
            and (draft.replica or len(held[key.device]) > 1),
            per_process=per_process and key.pod is not None,
            superseded=past,
        )

    def _standing(self, fresh: Mapping[TrackKey, Track], held: Holders) -> dict[TrackKey, Track]:
        """Earlier tracks that the batch lacks; superseded where it names another pod."""
        if self._before is None:
            return {}
        now = self._batch.received
        too_old = now - self._options.oldest - self._options.window
        standing = (
            (key, track if key.pod is None else _after(track, held.get(key.device)))
            for key, track in self._before.tracks.items()
            # A server's page is whole: what it no longer tells of, it no longer serves.
            if key not in fresh and too_old < track.received <= now and not track.serves
        )
        return dict(islice(standing, self._options.max_tracks - len(fresh)))


def _after(track: Track, pods: set[PodRef] | None) -> Track:
    """A track that a batch lacks which names these pods for its device; None if it names none."""
    if pods is None or track.superseded or (track.claim and track.claim.pod in pods):
        return track
    return replace(track, superseded=True, shared=False)
