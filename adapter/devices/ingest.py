"""From an exporter's rows to its tracks.

Pure but for the counting of rejects: the same batches in any order of rows make the same
exporter. Its cost is proportional to the batch, whatever else the store holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from adapter.catalog import Catalog
from adapter.cluster.pod import PodRef
from adapter.devices.accounting import Accounted, accounted
from adapter.devices.builder import Draft, Holders, holders, superseded
from adapter.devices.crosschecks import cross_checked
from adapter.devices.history import history
from adapter.devices.idlepower import IdlePower
from adapter.devices.location import Cluster, Location
from adapter.devices.options import TelemetryOptions
from adapter.devices.reader import DEVICES, Drafts
from adapter.devices.rejects import Rejects
from adapter.devices.series import Track, TrackKey
from adapter.devices.state import Exporter
from adapter.exposition.samples import Batch
from apiservice.runtime.steps import Steps


def absorb(
    before: Exporter | None,
    batch: Batch,
    catalog: Catalog,
    options: TelemetryOptions,
    rejects: Rejects,
    cluster: Cluster,
) -> Steps[Exporter]:
    """An exporter's state after a batch, in steps.

    The pods may change between two steps. Each row is judged by the pods of its moment: the next
    batch looks at those that have changed since, and every answer asks who may have the device.

    A track that the batch lacks stands until the age limit (labels come and go:
    dcgm-exporter#428). One whose device the batch gives to another pod is marked superseded:
    :mod:`adapter.attribution.sharing` knows whether the two share it.
    """
    drafts = Drafts(before, batch, catalog, options, rejects, cluster.pod)
    yield from drafts.read()
    made = _Tracks(before, batch, catalog, options, drafts, cluster, _boards(drafts.by_key))
    past = superseded(drafts.by_key)
    reported = _reported(before, batch, options, drafts)
    names, held = frozenset(reported), holders(drafts.by_key.keys() - past)
    earlier = before.tracks if before else {}
    counts = accounted(drafts.by_key, earlier, rejects, options.oldest)
    if len(drafts.by_key) > DEVICES:
        yield
    tracks = {}
    for number, (key, draft) in enumerate(drafts.by_key.items(), 1):
        tracks[key] = made.track(key, draft, names, held, counts, past=key in past)
        if not number % DEVICES:
            yield
    idle = before.idle.copy() if before else IdlePower()
    if options.cross_checks:
        tracks = yield from cross_checked(tracks, before, idle, options, rejects)
    standing = yield from made.standing(tracks, held)
    return Exporter(
        origin=batch.origin,
        received=batch.received,
        pod=drafts.pod,
        tracks=standing | tracks,
        reported=reported,
        scale=drafts.scale,
        idle=idle,
        beliefs=drafts.beliefs,
        disowned=drafts.disowned,
    )


def _boards(drafts: Mapping[TrackKey, Draft]) -> frozenset[str]:
    """Boards whose MIG instances have rows of their own."""
    devices = (draft.identity.device for draft in drafts.values() if draft.mig)
    return frozenset(device.board for device in devices if device is not None)


def _reported(
    before: Exporter | None, batch: Batch, options: TelemetryOptions, drafts: Drafts
) -> dict[str, float]:
    """Fields that the exporter has written within the age limit."""
    earlier = before.reported if before else {}
    since = batch.received - options.oldest
    recent = {name: t for name, t in earlier.items() if since < t <= batch.received}
    return recent | dict.fromkeys(drafts.reported, batch.received)


class _Tracks:
    """The tracks of one exporter, old and new."""

    def __init__(
        self,
        before: Exporter | None,
        batch: Batch,
        catalog: Catalog,
        options: TelemetryOptions,
        drafts: Drafts,
        cluster: Cluster,
        cut: frozenset[str],
    ) -> None:
        self._before = before
        self._batch = batch
        self._catalog = catalog
        self._options = options
        self._exporter_pod = drafts.pod
        self._undecided = drafts.undecided
        self._cut = cut
        self._location = Location(batch, drafts.pod, cluster)

    def track(
        self,
        key: TrackKey,
        draft: Draft,
        reported: frozenset[str],
        held: Holders,
        counts: Accounted,
        *,
        past: bool,
    ) -> Track:
        """The track that a draft becomes, with the samples that are held of it already."""
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
        for name, time in self._undecided.get(key.device, {}).items():
            samples = samples.without(name, time)
        at, claimed = draft.identity.device, draft.identity.claim
        assert at is not None  # noqa: S101 - a draft without a device is never made
        if claimed is not None and not claimed.serves and claimed.pod == self._exporter_pod:
            claimed = claimed._replace(suspect=True)
        return Track(
            device=at,
            claim=claimed,
            origin=self._batch.origin,
            node=self._location.node(draft.identity),
            host=draft.identity.host,
            received=self._batch.received,
            history=samples,
            reported=reported,
            window=self._options.window,
            shared=key.pod is not None
            and not past
            and (draft.replica or len(held[key.device]) > 1),
            per_process=key in counts.per_process,
            judged=counts.judged.get(key, 0.0),
            cut=key.pod is not None and not at.mig and key.device in self._cut,
            cluster=draft.identity.cluster,
            superseded=past,
        )

    def _decided(self, track: Track) -> Track:
        """An earlier track without the samples that a later one makes doubtful."""
        samples = track.history
        for name, time in self._undecided.get(track.device.id, {}).items():
            samples = samples.without(name, time)
        return track if samples is track.history else replace(track, history=samples)

    def standing(
        self, fresh: Mapping[TrackKey, Track], held: Holders
    ) -> Steps[dict[TrackKey, Track]]:
        """Earlier tracks that the batch lacks; superseded where it names another pod."""
        if self._before is None:
            return {}
        now = self._batch.received
        too_old = now - self._options.oldest - self._options.window
        standing = (
            (
                key,
                self._decided(track)
                if key.pod is None
                else _after(self._decided(track), held.get(key.device)),
            )
            for key, track in self._before.tracks.items()
            # A server's page is whole: what it no longer tells of, it no longer serves.
            if key not in fresh and too_old < track.received <= now and not track.serves
        )
        options = self._options
        most = options.server_tracks if self._batch.serves else options.max_tracks
        kept: dict[TrackKey, Track] = {}
        for key, track in islice(standing, max(0, most - len(fresh))):
            kept[key] = track
            if not len(kept) % DEVICES:
                yield
        return kept


def _after(track: Track, pods: set[PodRef] | None) -> Track:
    """A track that a batch lacks which names these pods for its device; None if it names none."""
    if pods is None or track.superseded or (track.claim and track.claim.pod in pods):
        return track
    return replace(track, superseded=True, shared=False)
