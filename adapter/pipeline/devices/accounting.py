"""Compare the per-pod samples of a page with the samples of the whole device.

From version 4.8.2, dcgm-exporter with ``--kubernetes-virtual-gpus`` writes utilisation and
used memory twice in one page: one sample of the device without a pod, and one sample of each pod's
own processes. The sample of a pod carries the label ``vgpu`` if the pod has a replica of the
device, and does not carry it if the pod has the whole device (``createPerProcessMetrics`` and
``getSharedGPU`` in its ``internal/pkg/transformation``).

The functions have no side effects except on the builders and reject counters that they are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.pipeline.catalog import FREE, RESERVED, USED, UTIL
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.history import Frame
from adapter.pipeline.devices.rejects import Rejects
from adapter.pipeline.devices.series import DeviceSeries, SeriesKey
from apiservice.runtime.steps import StepBudget, Steps

BLIND: Final = "per_process_blind"
ACCOUNTED: Final = frozenset((UTIL, USED))
"""Fields that dcgm-exporter accounts per process under ``--kubernetes-virtual-gpus``."""
_REST: Final = frozenset((FREE, RESERVED))
FRAMES: Final = 256
"""How many frames one step looks at: about 0.5 ms."""
_Pods = Sequence[tuple[SeriesKey, SeriesBuilder]]


class _Moment(NamedTuple):
    """What one page says about a device."""

    whole: Frame
    fields: frozenset[str]
    """The accounted fields for which the device has a sample."""
    pods: list[tuple[SeriesKey, SeriesBuilder, Frame]]
    """The pods with a sample of at least one of ``fields``."""

    @property
    def exclusive(self) -> bool:
        """Whether one pod has the whole device: no sample is of a replica."""
        holders = {key.pod for key, _, _ in self.pods}
        return len(holders) == 1 and not any(builder.replica for _, builder, _ in self.pods)


class Accounted(NamedTuple):
    """The result of the comparison for the builders of pods in one scrape result."""

    per_process: frozenset[SeriesKey]
    """Builders whose :data:`ACCOUNTED` fields measure the pod's own processes."""
    judged: Mapping[SeriesKey, float]
    """Builder -> epoch seconds of the last page that was compared with the device's own sample."""


def compare_pod_samples(
    builders: Mapping[SeriesKey, SeriesBuilder],
    before: Mapping[SeriesKey, DeviceSeries],
    rejects: Rejects,
    patience: float,
) -> Steps[Accounted]:
    """Compare the samples of pods with those of their devices, page by page.

    A pod that has a whole device gets the device's own samples, as it does from an exporter
    without the accounting. If the exporter cannot see the processes of pods (``hostPID`` or pod
    UIDs are off), their samples are 0; :mod:`adapter.pipeline.devices.remainder` finds these zeros
    by the device's own sample. So a sample without one beside it is left out.

    The free memory on a pod's samples is the device's, while the used memory is the pod's. The two
    do not add up, so the free memory is left out of the pods, and kept for the device.

    The work is proportional to the number of samples.

    Args:
        builders: the builders of one scrape result; changed in place.
        patience: seconds for which the device's own sample may be missing before the adapter
            assumes that the exporter no longer accounts processes, for example because an older
            version replaced it.
    """
    step = StepBudget(FRAMES)
    earlier = yield from _recent_series(builders, before, patience, step)
    per_process = {key for key, series in earlier.items() if series.per_process}
    judged = yield from _drop_judged(builders, before, step)
    compared: defaultdict[SeriesKey, set[float]] = defaultdict(set)
    of_device = yield from _pods_by_device(builders, step)
    for device, pods in of_device.items():
        whole = builders[_bare_key(device)]
        moments = yield from _moments(whole, pods, step)
        for time, moment in sorted(moments.items()):
            if step.spent(len(moment.pods)):
                yield
            keys = {key for key, _, _ in moment.pods}
            judged |= dict.fromkeys(keys, time)
            for key in keys:
                compared[key].add(time)
            _drop_unseen(moment, rejects)
            if moment.exclusive:
                per_process -= keys
                _give_whole(moment)
            else:
                per_process |= keys
                _keep_rest(moment)
    uncompared = {key: compared[key] for key in (*earlier, *compared)}
    yield from _drop_uncompared(uncompared, builders, rejects, step)
    for key in per_process:
        builders[key].drop(_REST)
        if step.spent(len(builders[key].frames)):
            yield
    return Accounted(frozenset(per_process), judged)


def _recent_series(
    builders: Mapping[SeriesKey, SeriesBuilder],
    before: Mapping[SeriesKey, DeviceSeries],
    patience: float,
    step: StepBudget,
) -> Steps[dict[SeriesKey, DeviceSeries]]:
    """Return the device series of builders whose device recently had its own sample."""
    earlier: dict[SeriesKey, DeviceSeries] = {}
    for key, builder in builders.items():
        series = before.get(key)
        if series is None or not series.judged:
            continue
        if max(builder.frames, default=0.0) - series.judged < patience:
            earlier[key] = series
        if step.spent(1 + len(builder.frames) // 16):
            yield
    return earlier


def _drop_judged(
    builders: Mapping[SeriesKey, SeriesBuilder],
    before: Mapping[SeriesKey, DeviceSeries],
    step: StepBudget,
) -> Steps[dict[SeriesKey, float]]:
    """Return when each builder was judged last. Drop what it has from before that time."""
    judged: dict[SeriesKey, float] = {}
    for key, builder in builders.items():
        series = before.get(key)
        if series is not None and series.judged:
            # A range query repeats a series' last sample without the device's sample beside it.
            judged[key] = series.judged
            builder.drop(ACCOUNTED | _REST, series.judged)
            if step.spent(len(builder.frames)):
                yield
    return judged


def _pods_by_device(
    builders: Mapping[SeriesKey, SeriesBuilder], step: StepBudget
) -> Steps[Mapping[str, _Pods]]:
    """Return the builders of pods for each device that has its own builder."""
    series: defaultdict[str, list[tuple[SeriesKey, SeriesBuilder]]] = defaultdict(list)
    many = len(builders) > FRAMES
    for key, builder in builders.items():
        if key.pod is not None and _bare_key(key.device) in builders:
            series[key.device].append((key, builder))
            if many and step.spent(1):
                yield
    return series


def _moments(whole: SeriesBuilder, pods: _Pods, step: StepBudget) -> Steps[dict[float, _Moment]]:
    """Return the moments at which a pod has a sample of a field that the device has then."""
    fields = {
        time: ACCOUNTED & {spelling.field.name for spelling in frame}
        for time, frame in whole.frames.items()
    }
    moments: dict[float, _Moment] = {}
    for key, builder in pods:
        for time, frame in builder.frames.items():
            of_device = fields.get(time)
            if of_device and any(spelling.field.name in of_device for spelling in frame):
                if time not in moments:
                    moments[time] = _Moment(whole.frames[time], of_device, [])
                moments[time].pods.append((key, builder, frame))
        if step.spent(len(builder.frames)):
            yield
    return moments


def _drop_unseen(moment: _Moment, rejects: Rejects) -> None:
    """Leave out zeros of fields for which the device has no sample: they cannot be verified."""
    unseen = ACCOUNTED - moment.fields
    for _, _, frame in moment.pods:
        zeros = [s for s, value in frame.items() if s.field.name in unseen and value == 0]
        if zeros:
            rejects.count(BLIND, len(zeros))
        for spelling in zeros:
            del frame[spelling]


def _drop_uncompared(
    compared: Mapping[SeriesKey, set[float]],
    builders: Mapping[SeriesKey, SeriesBuilder],
    rejects: Rejects,
    step: StepBudget,
) -> Steps[None]:
    """Leave out samples of pods at times at which the device has no sample."""
    for key, times in compared.items():
        if builders[key].drop(ACCOUNTED, but=times):
            rejects.count(BLIND)
        if step.spent(len(builders[key].frames)):
            yield


def _give_whole(moment: _Moment) -> None:
    fields = moment.fields
    for _, _, frame in moment.pods:
        for spelling in [s for s in frame if s.field.name in fields]:
            del frame[spelling]
        frame |= {s: value for s, value in moment.whole.items() if s.field.name in fields}


def _keep_rest(moment: _Moment) -> None:
    """Give the device its free memory back: the exporter writes it on the pods' samples only."""
    for _, _, frame in moment.pods:
        for spelling, value in frame.items():
            if spelling.field.name in _REST:
                moment.whole.setdefault(spelling, value)


def _bare_key(device: str) -> SeriesKey:
    return SeriesKey(device, None, "", "")
