"""What devices, and the parts of a server, contribute to a pod's values, and the schemas of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.answers.view.devices import Devices, device_series, in_numbers
from adapter.answers.view.fragments import (
    IDLE,
    METRIC,
    MISSING,
    NUMBER,
    UNIT,
    Json,
    Reasons,
    rounded,
)
from adapter.answers.view.holders import EVIDENCES, AssignmentEvidence, evidence_of
from adapter.answers.view.idle import device_idle
from adapter.answers.view.podvalues import UTILIZATION, AskedPod
from adapter.answers.view.schema import integer, listed, struct, text, time
from adapter.pipeline.attribution.reading import Absence, DeviceReading, Reading
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.nodelabels import INSTANCE_TYPE, capacity_type
from adapter.pipeline.devices.series import DeviceSeries
from apiservice.wire import instant

MetricResult = tuple[Metric, Reading | Absence]
"""A metric, and the pod's value of it."""


def device_parts(
    asked: AskedPod, found: Sequence[MetricResult], devices: Devices
) -> Iterator[Json]:
    """Yield every device that has, or could have, a part in a value of the pod."""
    parts: dict[str, list[tuple[Metric, DeviceReading]]] = {}
    for metric, reading in found:
        for part in reading.devices if isinstance(reading, Reading) else ():
            parts.setdefault(part.device, []).append((metric, part))
    named: dict[str, list[DeviceSeries]] = {}
    for series in asked.snapshot.naming(asked.pod.ref):
        seen = series.sees and series.device.id in parts  # else an exporter reports the device
        if seen or not series.serves:
            named.setdefault(series.device.id, []).append(series)
    left_out = {absence.device for _, each in found for absence in each.left_out}
    found_ids = (named.keys() | parts.keys() | left_out) - {""}
    for device in sorted(found_ids, key=lambda one: (in_numbers(devices.name_of(one)), one)):
        one = _Device(asked, device, named.get(device, ()), parts.get(device, ()), found)
        yield {key: value for key, value in one.fields(devices).items() if value}


class _Device(NamedTuple):
    """A device that has, or could have, a part in a value of the pod."""

    asked: AskedPod
    id: str
    named: Sequence[DeviceSeries]
    """The device series whose samples name the pod."""
    parts: Sequence[tuple[Metric, DeviceReading]]
    found: Sequence[MetricResult]

    def fields(self, devices: Devices) -> Json:
        """Return the fields; those that are empty are not known."""
        reported = self._reported(devices)
        all_series = self.named or reported
        placeholder = self.asked.pod.placeholder
        idle = None if placeholder else device_idle(reported, self.asked.snapshot, self.asked.now)
        newest = max(all_series, key=lambda series: series.received, default=None)
        times = [part.time for _, part in self.parts]
        containers = {series.assignment.container for series in self.named if series.assignment}
        busy = {part.attribution for metric, part in self.parts if metric.name == UTILIZATION}
        hows = busy or {part.attribution for _, part in self.parts}
        labels = self.asked.snapshot.cluster.labels(self.asked.pod.node)
        return {
            "device": self.id,
            "gpu": devices.name_of(self.id),
            "model": newest.device.model if newest is not None else "",
            "migProfile": newest.device.mig_profile if newest is not None else "",
            "node": newest.node or "" if newest is not None else "",
            "instanceType": labels.get(INSTANCE_TYPE, ""),
            "capacityType": capacity_type(labels),
            "exporter": newest.origin if newest is not None else "",
            "container": containers.pop() if len(containers) == 1 else "",
            "evidence": self._evidence(),
            "sampleTime": instant.write(max(times)) if times else "",
            "idleSince": "" if idle is None else instant.write(idle),
            "attribution": "+".join(sorted(hows)),
            "sharing": self._sharing(),
            "values": _values(self.parts, attributed=True),
            "leftOut": _left_out(self.asked, self.found, self.id, newest),
        }

    def _reported(self, devices: Devices) -> Sequence[DeviceSeries]:
        known = devices.get(devices.name_of(self.id))
        return device_series(known, self.asked.snapshot) if known is not None else ()

    def _evidence(self) -> str:
        if self.named:
            return min(map(evidence_of, self.named), key=list(AssignmentEvidence).index).value
        held = {holding.pod for holding in self.asked.snapshot.held(self.id)}
        return (
            AssignmentEvidence.EARLIER if self.asked.pod.ref in held else AssignmentEvidence.ONLY
        ).value

    def _sharing(self) -> Json:
        snapshot, pod = self.asked.snapshot, self.asked.pod
        share = snapshot.sharing(pod.node).of.get(pod.ref, {}).get(self.id)
        if share is not None:
            policy = snapshot.cluster.options.of(
                pod.ref.namespace, snapshot.cluster.labels(pod.node)
            )
            evidence, sharers = share.evidence.value, len(share.pods)
            return {"policy": policy.value, "evidence": evidence, "sharers": sharers}
        for _, part in self.parts:
            if part.policy:
                return {"policy": part.policy, "sharers": part.sharers}
        return {}


def _values(parts: Sequence[tuple[Metric, DeviceReading]], *, attributed: bool) -> list[Json]:
    """Return the values of a device or of a part of a server, each with its metrics."""
    values: dict[tuple[object, ...], Json] = {}
    for metric, part in parts:
        value: Json = {
            "metrics": [],
            "number": rounded(part.value),
            "unit": metric.unit.value,
            "time": instant.write(part.time),
            "series": part.formula,
        }
        if attributed:
            value["attribution"] = part.attribution.value
        key = tuple(each for name, each in value.items() if name != "metrics")
        values.setdefault(key, value)["metrics"].append(metric.name)
    return list(values.values())


def server_parts(asked: AskedPod, found: Sequence[MetricResult]) -> Iterator[Json]:
    """Yield the parts of the pod's server, such as its engines or models."""
    parts: dict[str, list[tuple[Metric, DeviceReading]]] = {}
    for metric, reading in found:
        for part in reading.devices if isinstance(reading, Reading) else ():
            parts.setdefault(part.device, []).append((metric, part))
        for absence in reading.left_out:
            parts.setdefault(absence.device, [])
    for name, its in sorted(parts.items()):
        one = {
            "part": name.split("/", 2)[-1],
            "values": _values(its, attributed=False),
            "leftOut": _left_out(asked, found, name, None),
        }
        yield {key: value for key, value in one.items() if value}


def _left_out(
    asked: AskedPod, found: Sequence[MetricResult], device: str, newest: DeviceSeries | None
) -> list[Json]:
    """Return the reasons for which a device, or a part of a server, has no part in values."""
    reasons = Reasons(asked.snapshot, asked.pod)
    for metric, reading in found:
        for absence in reading.left_out:
            if absence.device == device:
                reasons.add(absence, metric)
    return reasons.listed(newest)


_LEFT_OUT: Final = listed("What has no part in values, by reason.", MISSING)
_PART: Final = {
    "metrics": listed("The metrics with this value.", METRIC),
    "number": NUMBER,
    "unit": UNIT,
    "time": time("When the value was measured."),
    "series": text("The exporter's series, or sum of series, of the value."),
}
_ATTRIBUTION: Final = text(
    "exact if the value is the pod's own, copied if it is that of a shared device, split if it is "
    "the pod's part of a shared device."
)
DEVICES: Final = listed(
    "Every device that has, or could have, a part in a value of the pod.",
    struct(
        "A device.",
        device=text("Identity of the device, such as its UUID."),
        gpu=text("Name of the device's object: kubectl get gpus NAME."),
        model=text("Model of the device."),
        migProfile=text("Profile of the MIG instance or partition."),
        node=text("Node of the device, if it is certain."),
        instanceType=text("Type of the pod's node, by its label."),
        capacityType=text("How that node is paid for, by its labels: spot, on-demand."),
        exporter=text("Page, or instance in the store, that reports the device."),
        container=text("Container of the pod that has the device, if samples name one."),
        evidence=text(EVIDENCES),
        sampleTime=time("When the newest value of the device was measured."),
        idleSince=IDLE,
        attribution=_ATTRIBUTION,
        sharing=struct(
            "How several pods share the device. Absent if it is the pod's alone.",
            policy=text("How values are divided: copy, equal, memory or exact."),
            evidence=text("What shows that the device is shared, such as node_replicas."),
            sharers=integer("Running pods that are known to share it, with this one."),
        ),
        values=listed(
            "The device's part in each value.",
            struct("A value of the device.", **_PART, attribution=_ATTRIBUTION),
        ),
        leftOut=_LEFT_OUT,
    ),
)
SERVER: Final = listed(
    "The parts of the inference server in the pod, such as its engines or models.",
    struct(
        "A part of the server.",
        part=text("Labels that distinguish the part."),
        values=listed("The part's values.", struct("A value of the part.", **_PART)),
        leftOut=_LEFT_OUT,
    ),
)
