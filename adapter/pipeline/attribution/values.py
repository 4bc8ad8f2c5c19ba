"""Compute a pod's or a node's value of a metric; leave out what is too old or not selected.

The functions have no side effects. They return a reading, or an absence with its reason, and the
devices that were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from adapter.pipeline.attribution.candidate import Candidate, candidate, device_candidate
from adapter.pipeline.attribution.credibility import (
    BOARD,
    TOO_MANY,
    requested_devices,
    several_clusters,
    unbelieved_devices,
)
from adapter.pipeline.attribution.latencies import latency
from adapter.pipeline.attribution.ownpages import series_of_own_pages
from adapter.pipeline.attribution.policy import SharingPolicy
from adapter.pipeline.attribution.reading import Absence, DeviceReading, Reading
from adapter.pipeline.attribution.rejectedparts import Unused, withhold
from adapter.pipeline.attribution.sharing import Share, asks_shared
from adapter.pipeline.attribution.split import (
    NO_CONTEXT,
    NO_WEIGHT,
    NOT_EXACT,
    SHARE_UNKNOWN,
    NodeContext,
    shared_series,
)
from adapter.pipeline.attribution.unnamedpods import NO_EXPORTER, NOT_NAMED, UNNAMED
from adapter.pipeline.attribution.unreadseries import (
    NO_VALUE,
    NOT_EXPORTED,
    NOT_OF_INSTANCES,
    NOT_SHOWN,
    TOO_MANY_PARTS,
    unread_reason,
)
from adapter.pipeline.catalog.increases import sum_increases
from adapter.pipeline.catalog.metric import DeviceValue, Kind, Metric, Scope
from adapter.pipeline.catalog.migprofile import normalize_activity
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.assignment import Mismatch, mismatch, unfit_reason
from adapter.pipeline.devices.crosschecks import doubt
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.series import UNSUPPORTED, DeviceSeries, Doubt
from apiservice.labels.selector import Selector

UNKNOWN_METRIC: Final = "unknown_metric"
READING_BEGINS: Final = "reading_begins"
STALE: Final = "stale"
CONFLICT: Final = "conflict"
TOO_FEW: Final = "too_few_devices"
NOT_SELECTED: Final = "not_selected"
PREDECESSOR: Final = "predecessors_sample"
UNPLACED: Final = "shared_device_unknown"

UNREAD: Final = UNNAMED | {NO_VALUE, NOT_EXPORTED, READING_BEGINS}
"""Reasons that a pod which has just started has until the first page with its samples."""

_NEARNESS: Final[Mapping[str, int]] = {
    SHARE_UNKNOWN: 5,
    NOT_EXACT: 5,
    NO_WEIGHT: 5,
    TOO_MANY: 5,
    STALE: 4,
    **dict.fromkeys((*Doubt, UNSUPPORTED), 4),
    Doubt.UNEXPLAINED: 6,
    NO_VALUE: 3,
    NOT_SHOWN: 3,
    NOT_OF_INSTANCES: 2,
    NOT_EXPORTED: 2,
    CONFLICT: 1,
}
"""Reason -> how near it came to a value. Of several reasons, the nearest one is reported."""
_STEP: Final = 1.0
"""Seconds that a sample may be in the future.

A later sample was taken before the clock was set back. Its age is unknown, and it would count as
new until the clock catches up.
"""
_NONE: Final[Mapping[str, Share]] = {}
_SHARED: Final = attrgetter("shared")


class Question(NamedTuple):
    """What is requested from the device series."""

    metric: Metric
    selector: Selector
    """Matched against the devices' labels."""
    options: TelemetryOptions
    now: float
    """Epoch seconds."""


def pod_value(
    all_series: Sequence[DeviceSeries],
    pod: Pod,
    question: Question,
    rivals: Mapping[str, float] | None = None,
    context: NodeContext = NO_CONTEXT,
) -> Reading | Absence:
    """Return the value for ``pod``, from the devices that it has or shares.

    Args:
        all_series: the device series whose samples name the pod.
        pod: the current pod.
        question: what is requested.
        rivals: device -> epoch seconds of the newest scrape result of another exporter that
            assigns the device to another pod.
        context: what is known about the pod's node.
    """
    wrong = unfit_reason(pod, question.options)
    if wrong is not None:
        sick = wrong is Mismatch.UNHEALTHY
        return Absence(wrong, ", ".join(pod.unhealthy) if sick else f"pod is {pod.phase}")
    counted: list[DeviceSeries] = []
    left: list[Absence] = []
    server = question.metric.scope is Scope.SERVER
    born = pod.born
    shares = _NONE if server else context.sharing.shares_of(pod)
    for series in (*all_series, *shared_series(all_series, shares)) if shares else all_series:
        if series.serves is not server or series.superseded:
            continue
        if series.device.id in shares and not (series.shared or series.own):
            continue
        contested = {} if series.device.id in shares else rivals or {}
        reason = _refusal_reason(series, pod, born, contested, question.metric)
        if reason is None:
            counted.append(series.after(born))
        else:
            left.append(Absence(reason, series.origin, series.device.id))
    if not counted and not left and not server:
        counted = _server_series(all_series, pod, context) or _sole_device(pod, context)
    if not counted and not left and not server and pod.ref in context.sharing.unplaced:
        return Absence(UNPLACED, "no sample names the pod for one of the node's shared devices")
    if not counted:
        return _absence(left, NOT_NAMED)
    counted = series_of_own_pages(
        counted, pod, question.metric, question.now - question.options.oldest
    )
    mixed = several_clusters(counted)
    if mixed is not None:
        return replace(mixed, left_out=tuple(left))
    whole = not server and not any(map(_SHARED, counted))
    return _combine_devices(
        counted, question, left, requested_devices(pod) if whole else 0, pod, context
    )


def _server_series(
    all_series: Sequence[DeviceSeries], pod: Pod, context: NodeContext
) -> list[DeviceSeries]:
    """Return what the pod's own server reports about devices that no exporter reports."""
    if not pod.may_hold_gpu:
        return []
    shared = context.facts.shared or asks_shared(pod)
    if shared and context.policy in (SharingPolicy.EQUAL, SharingPolicy.MEMORY):
        return []  # the pods that share them are not known, so the value cannot be divided
    return [
        replace(series.after(pod.born), shared=shared)
        for series in all_series
        if series.sees and series.received > pod.born
    ]


def _sole_device(pod: Pod, context: NodeContext) -> list[DeviceSeries]:
    """Return the node's only device, which no sample assigns, if only this pod can hold it."""
    its = context.sharing.sole.get(pod.ref, ())
    return [series.after(pod.born) for series in its if series.received > pod.born]


def node_value(
    all_series: Sequence[DeviceSeries], question: Question, context: NodeContext = NO_CONTEXT
) -> Reading | Absence:
    """Return the value for all devices of a node, assigned or not.

    A board with MIG instances counts by its instances. For values that only the board has, it
    counts by the board.
    """
    cut = {series.device.board for series in all_series if series.mig}
    per_board = question.metric.per_board
    counted = [t for t in all_series if per_board or t.mig or t.device.id not in cut]
    if not counted:
        return Absence(NO_EXPORTER)
    return _combine_devices(counted, _question_of_whole(question), [], 0, None, context)


def device_value(
    all_series: Sequence[DeviceSeries], question: Question, context: NodeContext
) -> Reading | Absence:
    """Return the value of one device itself, regardless of the pods that have it.

    Args:
        all_series: the device's, at least one.
        question: what is requested.
        context: what is known about the device's node.
    """
    return _combine_devices(all_series, _question_of_whole(question), [], 0, None, context)


def _question_of_whole(question: Question) -> Question:
    metric = question.metric.of_device
    return question if metric is question.metric else question._replace(metric=metric)


def _combine_devices(
    all_series: Iterable[DeviceSeries],
    question: Question,
    left: list[Absence],
    requested: int,
    pod: Pod | None,
    context: NodeContext,
) -> Reading | Absence:
    metric, selector, options, _ = question
    devices: dict[str, list[Candidate]] = {}
    everything = selector.empty
    named_devices: dict[str, list[Candidate]] = {}
    unread = NOT_EXPORTED
    unused: list[Unused] = []
    for series in all_series:
        series_candidate = _candidate(series, question, pod, context)
        device = series.device.board if metric.per_board else series.device.id
        reason = _unusable_reason(series_candidate, question)
        if reason is None:
            named_devices.setdefault(device, []).append(series_candidate)
        labels = {} if everything else series_candidate.labels(metric)
        if not everything and not selector.matches(labels):
            has = ", ".join([f"{key}={value}" for key, value in sorted(labels.items())])
            left.append(Absence(NOT_SELECTED, f"it has {has}", series.device.id))
            continue
        if reason == TOO_MANY_PARTS:
            return Absence(reason, series.origin)  # the other pages of the pod are a part, too
        if series_candidate.measured is None and series.serves:
            unread = unread if reason in (NOT_EXPORTED, None) else reason
            continue  # another part of the server, such as a model without this value
        usable = devices.setdefault(device, [])
        if reason is not None:
            left.append(Absence(reason, series.origin, series.device.id))
            unused.append(Unused(device, series_candidate, left[-1]))
        else:
            usable.append(series_candidate)
    if pod is not None and metric.scope is not Scope.SERVER:
        withhold(devices, unused, left, metric)
        for device, why in unbelieved_devices(named_devices, requested, pod, context).items():
            devices.pop(device, None)
            left.append(Absence(why, device=device))
    order = sorted(devices) if len(devices) > 1 else devices
    parts = tuple(
        [device_candidate(devices[name], metric, pod).reading() for name in order if devices[name]]
    )
    expected = max(requested if everything else 0, len(devices))
    if not parts:
        return _absence(left, unread)
    return _build_reading(parts, expected, metric, options, tuple(left))


def _build_reading(
    parts: tuple[DeviceReading, ...],
    expected: int,
    metric: Metric,
    options: TelemetryOptions,
    left: tuple[Absence, ...],
) -> Reading | Absence:
    """Return the value of at least one device, of those that should have one."""
    value = metric.over_devices.of([part.value for part in parts])
    # A device without a reading may be the one that works, and a 0 scales the workload in.
    needed = expected if value == 0 else options.at_least * expected
    if len(parts) < needed:
        detail = f"{len(parts)} of {expected} devices have a valid reading"
        detail += ", and a 0 needs all" if value == 0 else ""
        return Absence(TOO_FEW, detail, left_out=left)
    counted = metric.kind is Kind.HISTOGRAM
    whole = (
        sum_increases(part.increase for part in parts if part.increase is not None)
        if counted
        else None
    )
    if whole is not None:
        partial = len(parts) < expected
        return latency(metric, whole, parts, options, left, partial=partial)
    oldest = min([part.time for part in parts])
    return Reading(
        value=value,
        time=oldest,
        window=metric.span(options.window),
        expires=oldest + options.oldest,
        devices=parts,
        partial=len(parts) < expected,
        left_out=left,
    )


def _candidate(
    series: DeviceSeries, question: Question, pod: Pod | None, context: NodeContext
) -> Candidate:
    metric = question.metric
    measured = _read_value(series, metric, normalize=context.normalized)
    return candidate(metric, series, measured, pod, context)


def _read_value(series: DeviceSeries, metric: Metric, *, normalize: bool) -> DeviceValue | None:
    measured = metric.read(series)
    if normalize and measured is not None and series.mig:
        return normalize_activity(measured, metric, series.device.mig_profile)
    return measured


def current_value(
    series: DeviceSeries, metric: Metric, options: TelemetryOptions, now: float, *, normalize: bool
) -> DeviceValue | None:
    """Return a metric's value in one device series; None if there is none or it is too old.

    Args:
        series: of the device.
        metric: what is requested.
        options: the age limit.
        now: epoch seconds.
        normalize: see :attr:`adapter.pipeline.attribution.policy.SharingOptions.normalized`.
    """
    measured = _read_value(series, metric, normalize=normalize)
    return None if measured is None or _is_old(measured, options, now) else measured


def _is_old(measured: DeviceValue, options: TelemetryOptions, now: float) -> bool:
    age = now - measured.time
    return age >= options.oldest or age < -_STEP


def _unusable_reason(series_candidate: Candidate, question: Question) -> str | None:
    """Return why a candidate has no part in the value."""
    if series_candidate.measured is None:
        return doubt(question.metric, series_candidate.series) or unread_reason(
            question.metric, series_candidate.series
        )
    if _is_old(series_candidate.measured, question.options, question.now):
        return STALE
    return series_candidate.allocation if isinstance(series_candidate.allocation, str) else None


def _refusal_reason(
    series: DeviceSeries, pod: Pod, born: float, rivals: Mapping[str, float], metric: Metric
) -> str | None:
    if series.cut and not metric.per_board:
        return BOARD
    if rivals.get(series.device.id, float("-inf")) > series.received:
        return CONFLICT
    if series.received <= born:
        return PREDECESSOR
    # The samples of a shared device may be those without a pod.
    return mismatch(series.assignment, pod, series.node) if series.assignment is not None else None


def _absence(left: Sequence[Absence], otherwise: str) -> Absence:
    """Return the absence for the reason that came nearest to a value, with its devices."""
    if not left:
        return Absence(otherwise)
    reason = max((item.reason for item in left), key=lambda r: (_NEARNESS.get(r, 0), r))
    devices = sorted({item.device for item in left if item.reason == reason})
    detail = ", ".join(devices)
    if reason == NOT_SELECTED:
        # A selector with an unknown key selects nothing in silence: say which keys exist.
        detail = next(f"{item.device}: {item.detail}" for item in left if item.reason == reason)
    return Absence(reason, detail, left_out=tuple(left))
