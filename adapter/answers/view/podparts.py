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
    round_number,
)
from adapter.answers.view.holders import EVIDENCES, AssignmentEvidence, evidence_of
from adapter.answers.view.idle import device_idle
from adapter.answers.view.podvalues import UTILIZATION, AskedPod
from adapter.answers.view.schema import array, integer, struct, text, time
from adapter.pipeline.attribution.reading import Absence, DeviceReading, Reading
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.nodelabels import INSTANCE_TYPE, capacity_type
from adapter.pipeline.devices.series import DeviceSeries
from apiservice.wire import instant

MetricResult = tuple[Metric, Reading | Absence]
"""A metric, and the pod's value of it."""


def device_parts(
    asked_pod: AskedPod, results: Sequence[MetricResult], devices: Devices
) -> Iterator[Json]:
    """Yield every device that has, or could have, a part in a value of the pod."""
    parts: dict[str, list[tuple[Metric, DeviceReading]]] = {}
    for metric, reading in results:
        for part in reading.devices if isinstance(reading, Reading) else ():
            parts.setdefault(part.device, []).append((metric, part))
    series_of: dict[str, list[DeviceSeries]] = {}
    for series in asked_pod.snapshot.series_naming(asked_pod.pod.ref):
        sees_part = series.sees and series.device.id in parts  # else an exporter reports the device
        if sees_part or not series.serves:
            series_of.setdefault(series.device.id, []).append(series)
    left_out = {absence.device for _, value in results for absence in value.left_out}
    identities = (series_of.keys() | parts.keys() | left_out) - {""}
    for identity in sorted(
        identities, key=lambda identity: (in_numbers(devices.name_of(identity)), identity)
    ):
        device = _Device(
            asked_pod, identity, series_of.get(identity, ()), parts.get(identity, ()), results
        )
        yield {key: value for key, value in device.fields(devices).items() if value}


class _Device(NamedTuple):
    """A device that has, or could have, a part in a value of the pod."""

    asked_pod: AskedPod
    id: str
    named: Sequence[DeviceSeries]
    """The device series whose samples name the pod."""
    parts: Sequence[tuple[Metric, DeviceReading]]
    results: Sequence[MetricResult]

    def fields(self, devices: Devices) -> Json:
        """Return the fields; those that are empty are not known."""
        reported = self._reported_series(devices)
        all_series = self.named or reported
        placeholder = self.asked_pod.pod.placeholder
        idle = (
            None
            if placeholder
            else device_idle(reported, self.asked_pod.snapshot, self.asked_pod.now)
        )
        newest = max(all_series, key=lambda series: series.received, default=None)
        times = [part.time for _, part in self.parts]
        containers = {series.assignment.container for series in self.named if series.assignment}
        busy = {part.attribution for metric, part in self.parts if metric.name == UTILIZATION}
        hows = busy or {part.attribution for _, part in self.parts}
        labels = self.asked_pod.snapshot.cluster.labels(self.asked_pod.pod.node)
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
            "leftOut": _left_out_reasons(self.asked_pod, self.results, self.id, newest),
        }

    def _reported_series(self, devices: Devices) -> Sequence[DeviceSeries]:
        device = devices.get(devices.name_of(self.id))
        return device_series(device, self.asked_pod.snapshot) if device is not None else ()

    def _evidence(self) -> str:
        if self.named:
            return min(map(evidence_of, self.named), key=list(AssignmentEvidence).index).value
        earlier = {holding.pod for holding in self.asked_pod.snapshot.holdings_of(self.id)}
        return (
            AssignmentEvidence.EARLIER
            if self.asked_pod.pod.ref in earlier
            else AssignmentEvidence.ONLY
        ).value

    def _sharing(self) -> Json:
        snapshot, pod = self.asked_pod.snapshot, self.asked_pod.pod
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
            "number": round_number(part.value),
            "unit": metric.unit.value,
            "time": instant.write(part.time),
            "series": part.formula,
        }
        if attributed:
            value["attribution"] = part.attribution.value
        key = tuple(field for name, field in value.items() if name != "metrics")
        values.setdefault(key, value)["metrics"].append(metric.name)
    return list(values.values())


def server_parts(asked_pod: AskedPod, results: Sequence[MetricResult]) -> Iterator[Json]:
    """Yield the parts of the pod's server, such as its engines or models."""
    parts: dict[str, list[tuple[Metric, DeviceReading]]] = {}
    for metric, reading in results:
        for part in reading.devices if isinstance(reading, Reading) else ():
            parts.setdefault(part.device, []).append((metric, part))
        for absence in reading.left_out:
            parts.setdefault(absence.device, [])
    for name, its in sorted(parts.items()):
        body = {
            "part": name.split("/", 2)[-1],
            "values": _values(its, attributed=False),
            "leftOut": _left_out_reasons(asked_pod, results, name, None),
        }
        yield {key: value for key, value in body.items() if value}


def _left_out_reasons(
    asked_pod: AskedPod, results: Sequence[MetricResult], device: str, newest: DeviceSeries | None
) -> list[Json]:
    """Return the reasons for which a device, or a part of a server, has no part in values."""
    reasons = Reasons(asked_pod.snapshot, asked_pod.pod)
    for metric, reading in results:
        for absence in reading.left_out:
            if absence.device == device:
                reasons.add(absence, metric)
    return reasons.list_reasons(newest)


_LEFT_OUT: Final = array("What has no part in values, by reason.", MISSING)
_PART: Final = {
    "metrics": array("The metrics with this value.", METRIC),
    "number": NUMBER,
    "unit": UNIT,
    "time": time("When the value was measured."),
    "series": text("The exporter's series, or sum of series, of the value."),
}
_ATTRIBUTION: Final = text(
    "exact if the value is the pod's own, copied if it is that of a shared device, split if it is "
    "the pod's part of a shared device."
)
DEVICES: Final = array(
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
        values=array(
            "The device's part in each value.",
            struct("A value of the device.", **_PART, attribution=_ATTRIBUTION),
        ),
        leftOut=_LEFT_OUT,
    ),
)
SERVER: Final = array(
    "The parts of the inference server in the pod, such as its engines or models.",
    struct(
        "A part of the server.",
        part=text("Labels that distinguish the part."),
        values=array("The part's values.", struct("A value of the part.", **_PART)),
        leftOut=_LEFT_OUT,
    ),
)
