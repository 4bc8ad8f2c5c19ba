"""From what exporters say about devices to what a pod or a node is doing.

Pure: tracks, a pod, a metric and the time in; a reading or a reasoned absence out, with
whatever was left out on the way beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adapter.claim import refusal, unfit
from adapter.cluster.pod import Pod
from adapter.draft import ACCOUNTED
from adapter.exporter import Track
from adapter.metric import Kind, Metric, Sample
from adapter.reading import Absence, Attribution, DeviceReading, Reading
from adapter.telemetryoptions import TelemetryOptions
from apiservice.selector import Selector

UNKNOWN_METRIC: Final = "unknown_metric"
NO_ROWS: Final = "no_rows"
NO_VALUE: Final = "no_value"
STALE: Final = "stale"
CONFLICT: Final = "conflict"
TOO_FEW: Final = "too_few_devices"
NOT_SELECTED: Final = "not_selected"
PREDECESSOR: Final = "predecessors_row"

_NEARNESS: Final = {STALE: 3, NO_VALUE: 2, CONFLICT: 1}
"""Of several reasons, the one that the least was missing for."""
_WHOLE: Final = ("nvidia.com/gpu", "amd.com/gpu")
_MIG_PREFIX: Final = "nvidia.com/mig-"


class LeftOut(NamedTuple):
    """A device that was claimed for the pod and has no part in its value."""

    device: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
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


class _Candidate(NamedTuple):
    track: Track
    sample: Sample


def pod_outcome(
    tracks: Sequence[Track],
    pod: Pod,
    question: Question,
    rivals: Mapping[str, float] | None = None,
) -> Outcome:
    """What ``pod`` is doing, by the tracks that name it.

    Args:
        tracks: those whose rows name the pod.
        pod: as the cluster has it now.
        question: what is asked.
        rivals: device -> epoch seconds of the newest batch of another exporter that gives
            the device to another pod.
    """
    wrong = unfit(pod, unready=question.options.unready)
    if wrong is not None:
        return Outcome(Absence(wrong, f"pod is {pod.phase}"))
    kept: list[Track] = []
    left: list[LeftOut] = []
    for track in tracks:
        reason = _refused(track, pod, rivals or {})
        if reason is None:
            kept.append(track.after(pod.born))
        else:
            left.append(LeftOut(track.device.id, reason, track.origin))
    if not kept:
        return Outcome(_absence(left, NO_ROWS), tuple(left))
    shared = any(track.shared for track in kept)
    expected = _requested(pod) if question.selector.empty and not shared else 0
    return _combined(kept, question, left, expected)


def node_outcome(tracks: Sequence[Track], question: Question) -> Outcome:
    """What all devices of a node are doing, assigned or not.

    A board that is cut into MIG instances counts by its instances, or, for what the board
    alone can have, by the board.
    """
    cut = {track.device.board for track in tracks if track.mig}
    per_board = question.metric.per_board
    kept = [t for t in tracks if per_board or t.mig or t.device.id not in cut]
    return _combined(kept, question, [], 0) if kept else Outcome(Absence(NO_ROWS))


def _combined(
    tracks: Iterable[Track], question: Question, left: list[LeftOut], expected: int
) -> Outcome:
    metric, selector, options, now = question
    devices: dict[str, _Candidate | None] = {}
    for track in tracks:
        sample = metric.read(track)
        if not selector.empty and not selector.matches(_labels(track, sample)):
            left.append(LeftOut(track.device.id, NOT_SELECTED, track.origin))
            continue
        device = track.device.board if metric.per_board else track.device.id
        best = devices.setdefault(device, None)
        if sample is None:
            left.append(LeftOut(track.device.id, NO_VALUE, track.origin))
        elif sample.time + options.oldest <= now:
            left.append(LeftOut(track.device.id, STALE, track.origin))
        elif best is None or _rank(track, sample) > _rank(*best):
            devices[device] = _Candidate(track, sample)
    found = [devices[device] for device in sorted(devices)]
    parts = tuple(_device_reading(part) for part in found if part is not None)
    expected = max(expected, len(devices))
    if not parts:
        return Outcome(_absence(left, NO_VALUE), tuple(left))
    if len(parts) < options.at_least * expected:
        detail = f"{len(parts)} of {expected} devices have a valid reading"
        return Outcome(Absence(TOO_FEW, detail), tuple(left))
    oldest = min(part.time for part in parts)
    reading = Reading(
        value=metric.over_devices.of([part.value for part in parts]),
        time=oldest,
        window=round(options.window) if metric.kind is Kind.MEAN else None,
        expires=oldest + options.oldest,
        devices=parts,
        partial=len(parts) < expected,
    )
    return Outcome(reading, tuple(left))


def _refused(track: Track, pod: Pod, rivals: Mapping[str, float]) -> str | None:
    if track.claim is None:
        return NO_ROWS
    if rivals.get(track.device.id, float("-inf")) > track.received:
        return CONFLICT
    if track.received <= pod.born:
        return PREDECESSOR
    return refusal(track.claim, pod, track.node)


def _rank(track: Track, sample: Sample) -> tuple[bool, float, float]:
    """Of one device's candidates: the board's own row, then the newest, then the larger."""
    return (not track.mig, sample.time, sample.value)


def _requested(pod: Pod) -> int:
    """Devices that the spec asks for, of the kinds where one is one device."""
    return sum(
        count
        for name, count in pod.gpus.items()
        if name in _WHOLE or (name.startswith(_MIG_PREFIX) and not name.endswith(".shared"))
    )


def _absence(left: Sequence[LeftOut], otherwise: str) -> Absence:
    """The reason of what came nearest to a value, with the devices it holds for."""
    if not left:
        return Absence(otherwise)
    reason = max((item.reason for item in left), key=lambda r: (_NEARNESS.get(r, 0), r))
    devices = sorted({item.device for item in left if item.reason == reason})
    return Absence(reason, ", ".join(devices))


def _device_reading(part: _Candidate) -> DeviceReading:
    track, sample = part
    return DeviceReading(
        device=track.device.id,
        value=sample.value,
        time=sample.time,
        labels=_labels(track, sample),
        basis=sample.series,
    )


def _labels(track: Track, sample: Sample | None) -> dict[str, str]:
    """What ``metric.selector`` selects by; a label that is not known is not there."""
    exact = not track.shared or (
        track.per_process and sample is not None and sample.field in ACCOUNTED
    )
    labels = {
        "device": track.device.id,
        "sharing": "shared" if track.shared else "exclusive",
        "attribution": Attribution.EXACT.value if exact else Attribution.COPIED.value,
    }
    if track.device.model:
        labels["model"] = track.device.model
    if track.device.mig_profile:
        labels["mig_profile"] = track.device.mig_profile
    if track.claim is not None and track.claim.container:
        labels["container"] = track.claim.container
    return labels
