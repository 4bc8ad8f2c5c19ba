"""From what exporters say about devices to what a pod or a node is doing.

Pure: tracks, a pod, a metric and the time in; a reading or a reasoned absence out, with
whatever was left out on the way beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from adapter.attribution.candidate import Candidate, candidate, of_device
from adapter.attribution.credibility import BOARD, TOO_MANY, asked, several_clusters, unbelieved
from adapter.attribution.policy import Policy
from adapter.attribution.reading import Absence, Reading
from adapter.attribution.sharing import Share, asks_shared
from adapter.attribution.split import NO_WEIGHT, NOT_EXACT, NOWHERE, SHARE_UNKNOWN, Place, lent
from adapter.catalog.metric import Metric, Scope
from adapter.catalog.migprofile import normalized
from adapter.cluster.pod import Pod
from adapter.devices.assignment import refusal, unfit
from adapter.devices.crosschecks import doubt
from adapter.devices.options import TelemetryOptions
from adapter.devices.series import Doubt, Track
from apiservice.labels.selector import Selector

UNKNOWN_METRIC: Final = "unknown_metric"
NO_ROWS: Final = "no_rows"
NO_VALUE: Final = "no_value"
STALE: Final = "stale"
CONFLICT: Final = "conflict"
TOO_FEW: Final = "too_few_devices"
NOT_SELECTED: Final = "not_selected"
PREDECESSOR: Final = "predecessors_row"
UNPLACED: Final = "shared_device_unknown"

_NEARNESS: Final[Mapping[str, int]] = {
    SHARE_UNKNOWN: 4,
    NOT_EXACT: 4,
    NO_WEIGHT: 4,
    TOO_MANY: 4,
    STALE: 3,
    **dict.fromkeys(Doubt, 3),
    NO_VALUE: 2,
    CONFLICT: 1,
}
"""Of several reasons, the one that the least was missing for."""
_STEP: Final = 1.0
"""Seconds. A sample that is more than this in the future was taken before the clock was set
back: there is no telling how old it is, and it would pass for new until the clock caught up."""
_NONE: Final[Mapping[str, Share]] = {}
_SHARED: Final = attrgetter("shared")


class LeftOut(NamedTuple):
    """A device that was claimed for the pod and has no part in its value."""

    device: str
    reason: str
    detail: str = ""


class Outcome(NamedTuple):
    """A value, or why there is none, and what was left out on the way."""

    value: Reading | Absence
    left_out: tuple[LeftOut, ...] = ()


class Question(NamedTuple):
    """What is asked of the tracks."""

    metric: Metric
    selector: Selector
    """Over the devices' labels."""
    options: TelemetryOptions
    now: float
    """Epoch seconds."""


def pod_outcome(
    tracks: Sequence[Track],
    pod: Pod,
    question: Question,
    rivals: Mapping[str, float] | None = None,
    place: Place = NOWHERE,
) -> Outcome:
    """What ``pod`` is doing, by the tracks that name it and the devices that it shares.

    Args:
        tracks: those whose rows name the pod.
        pod: as the cluster has it now.
        question: what is asked.
        rivals: device -> epoch seconds of the newest batch of another exporter that gives
            the device to another pod.
        place: what is known about where it runs.
    """
    wrong = unfit(pod, unready=question.options.unready)
    if wrong is not None:
        return Outcome(Absence(wrong, f"pod is {pod.phase}"))
    kept: list[Track] = []
    left: list[LeftOut] = []
    server = question.metric.scope is Scope.SERVER
    shares = _NONE if server else place.sharing.of.get(pod.ref, _NONE)
    for track in (*tracks, *lent(tracks, shares)) if shares else tracks:
        if track.serves is not server or track.superseded:
            continue
        if track.device.id in shares and not (track.shared or track.own):
            continue
        contested = {} if track.device.id in shares else rivals or {}
        reason = _refused(track, pod, contested, question.metric)
        if reason is None:
            kept.append(track.after(pod.born))
        else:
            left.append(LeftOut(track.device.id, reason, track.origin))
    if not kept and not left and not server:
        kept = _seen(tracks, pod, place)
    if not kept and not left and not server and pod.ref in place.sharing.unplaced:
        return Outcome(Absence(UNPLACED, "of several shared devices no row named the pod's"))
    if not kept:
        return Outcome(_absence(left, NO_ROWS), tuple(left))
    mixed = several_clusters(kept)
    if mixed is not None:
        return Outcome(mixed, tuple(left))
    whole = not server and not any(map(_SHARED, kept))
    return _combined(kept, question, left, asked(pod) if whole else 0, pod, place)


def _seen(tracks: Sequence[Track], pod: Pod, place: Place) -> list[Track]:
    """What the pod's own server says of its devices; heard where no exporter speaks of them."""
    if not pod.holds_gpu:
        return []
    shared = place.facts.shared or asks_shared(pod)
    if shared and place.policy in (Policy.EQUAL, Policy.MEMORY):
        return []  # nobody tells among whom to divide
    return [
        replace(track.after(pod.born), shared=shared)
        for track in tracks
        if track.sees and track.received > pod.born
    ]


def node_outcome(tracks: Sequence[Track], question: Question, place: Place = NOWHERE) -> Outcome:
    """What all devices of a node are doing, assigned or not.

    A board that is cut into MIG instances counts by its instances, or, for what the board
    alone can have, by the board.
    """
    cut = {track.device.board for track in tracks if track.mig}
    per_board = question.metric.per_board
    kept = [t for t in tracks if per_board or t.mig or t.device.id not in cut]
    if not kept:
        return Outcome(Absence(NO_ROWS))
    return _combined(kept, question, [], 0, None, place)


def _combined(
    tracks: Iterable[Track],
    question: Question,
    left: list[LeftOut],
    requested: int,
    pod: Pod | None,
    place: Place,
) -> Outcome:
    metric, selector, options, _ = question
    devices: dict[str, list[Candidate]] = {}
    everything = selector.empty
    named: dict[str, list[Candidate]] = {}
    for track in tracks:
        found = _candidate(track, question, pod, place)
        device = track.device.board if metric.per_board else track.device.id
        reason = _unusable(found, question)
        if reason is None:
            named.setdefault(device, []).append(found)
        if not everything and not selector.matches(found.labels(metric)):
            left.append(LeftOut(track.device.id, NOT_SELECTED, track.origin))
            continue
        if found.sample is None and track.serves:
            continue  # another part of the server: a model that has no such number
        usable = devices.setdefault(device, [])
        if reason is not None:
            left.append(LeftOut(track.device.id, reason, track.origin))
        else:
            usable.append(found)
    if pod is not None and metric.scope is not Scope.SERVER:
        for device, why in unbelieved(named, requested, pod, place).items():
            devices.pop(device, None)
            left.append(LeftOut(device, why))
    parts = tuple(
        of_device(usable, metric, pod).reading(metric)
        for _, usable in sorted(devices.items())
        if usable
    )
    expected = max(requested if everything else 0, len(devices))
    if not parts:
        return Outcome(_absence(left, NO_VALUE), tuple(left))
    if len(parts) < options.at_least * expected:
        detail = f"{len(parts)} of {expected} devices have a valid reading"
        return Outcome(Absence(TOO_FEW, detail), tuple(left))
    oldest = min(part.time for part in parts)
    reading = Reading(
        value=metric.over_devices.of([part.value for part in parts]),
        time=oldest,
        window=metric.span(options.window),
        expires=oldest + options.oldest,
        devices=parts,
        partial=len(parts) < expected,
    )
    return Outcome(reading, tuple(left))


def _candidate(track: Track, question: Question, pod: Pod | None, place: Place) -> Candidate:
    metric = question.metric
    sample = metric.read(track)
    if sample is not None and track.mig and place.normalized:
        sample = normalized(sample, metric, track.device.mig_profile)
    return candidate(metric, track, sample, pod, place)


def _unusable(found: Candidate, question: Question) -> str | None:
    """Why a candidate has no part in the value."""
    if found.sample is None:
        return doubt(question.metric, found.track) or NO_VALUE
    age = question.now - found.sample.time
    if age >= question.options.oldest or age < -_STEP:
        return STALE
    return found.given if isinstance(found.given, str) else None


def _refused(track: Track, pod: Pod, rivals: Mapping[str, float], metric: Metric) -> str | None:
    if track.cut and not metric.per_board:
        return BOARD
    if rivals.get(track.device.id, float("-inf")) > track.received:
        return CONFLICT
    if track.received <= pod.born:
        return PREDECESSOR
    # A shared device's samples may be of a row that names nobody.
    return refusal(track.claim, pod, track.node) if track.claim is not None else None


def _absence(left: Sequence[LeftOut], otherwise: str) -> Absence:
    """The reason of what came nearest to a value, with the devices it holds for."""
    if not left:
        return Absence(otherwise)
    reason = max((item.reason for item in left), key=lambda r: (_NEARNESS.get(r, 0), r))
    devices = sorted({item.device for item in left if item.reason == reason})
    return Absence(reason, ", ".join(devices))
