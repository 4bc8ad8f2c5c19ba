"""One pod as an object of the view API, which explains each of its values, and the schema of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.attribution.reading import Absence, DeviceReading, Reading
from adapter.catalog.metric import Metric, Scope
from adapter.cluster.hpas import ScalingHpas
from adapter.cluster.pod import Pod
from adapter.devices.series import DeviceSeries
from adapter.view.devices import Devices, device_series, in_numbers
from adapter.view.fragments import (
    ABSENT,
    IDLE,
    METRIC,
    MISSING,
    NUMBER,
    UNIT,
    VALUE,
    WHOLE_REASON,
    Json,
    Reasons,
    expressible,
    measured,
    rounded,
    why,
)
from adapter.view.holders import EVIDENCES, AssignmentEvidence, evidence_of
from adapter.view.hpaparts import ASKING, MORE, asking, ours
from adapter.view.idle import device_idle, pod_idle
from adapter.view.owner import Above, topmost
from adapter.view.podvalues import UTILIZATION, AskedPod, principal
from adapter.view.schema import boolean, integer, listed, mapping, struct, text, time
from apiservice.wire import instant

TOO_LARGE: Final = "too_large"
_Read = tuple[Metric, Reading | Absence]
_Found = Sequence[_Read]


def made(asked: AskedPod, devices: Devices, hpas: ScalingHpas) -> Json:
    """Return the object of a pod.

    Args:
        asked: the pod, at one time.
        devices: the names of the devices.
        hpas: those that scale a workload of the pod.
    """
    pod = asked.pod
    found: list[_Read] = [(metric, asked.reading(metric.name)) for metric in asked.metrics()]
    found += _asked_for(asked, found, hpas)
    main = principal(asked)
    of_devices = [each for each in found if each[0].scope is Scope.DEVICE]
    of_server = [each for each in found if each[0].scope is Scope.SERVER]
    body: Json = {
        "metadata": _metadata(pod),
        "node": pod.node,
        "phase": pod.phase,
        "ready": pod.ready,
        "workload": workload(above) if (above := topmost(pod)) is not None else {},
        "requests": dict(pod.gpus),
        "resourceClaims": pod.claims,
        "measured": isinstance(main, Reading),
        "reason": why(main, asked.snapshot, pod) if isinstance(main, Absence) else {},
        "metrics": list(_metrics(found)),
        "absent": _absent(asked, found),
        "devices": list(_devices(asked, of_devices, devices)),
        "server": list(_parts(asked, of_server)),
        "idleSince": instant.write(idle) if (idle := pod_idle(asked)) is not None else "",
        "hpas": asking(hpas.first, asked.snapshot.catalog.metrics),
        "hpasNotShown": hpas.more,
    }
    always = ("ready", "measured")
    return {key: value for key, value in body.items() if value or key in always}


def _asked_for(asked: AskedPod, found: _Found, hpas: ScalingHpas) -> Iterator[_Read]:
    """Yield why the pod lacks further metrics that HPAs read, such as those of its server."""
    catalog, seen = asked.snapshot.catalog.metrics, {metric.name for metric, _ in found}
    for hpa in hpas.first:
        for shown in ours(hpa, catalog):
            metric = catalog[shown.name]
            if shown.type != "Pods" or metric.name in seen:
                continue
            seen.add(metric.name)
            reading = asked.reading(metric.name)
            if isinstance(reading, Absence):
                yield metric, reading


def _metadata(pod: Pod) -> Json:
    found: Json = {
        "namespace": pod.ref.namespace,
        "name": pod.ref.name,
        "uid": pod.uid,
        "labels": dict(pod.labels),
    }
    if pod.born:
        found["creationTimestamp"] = instant.write(pod.born)
    return found


def workload(above: Above) -> Json:
    """Return a reference to a workload."""
    return {"apiVersion": above.api_version, "kind": above.kind, "name": above.name}


def _metrics(found: _Found) -> Iterator[Json]:
    for metric, reading in found:
        if isinstance(reading, Reading) and expressible(reading.value):
            yield measured(metric, reading)


def _absent(asked: AskedPod, found: _Found) -> list[Json]:
    """Return the reasons for which metrics have no value, each with its metrics."""
    reasons = Reasons(asked.snapshot, asked.pod)
    for metric, reading in found:
        if isinstance(reading, Absence):
            reasons.add(reading, metric)
        elif not expressible(reading.value):
            reasons.add(Absence(TOO_LARGE), metric)
    return reasons.listed()


def _devices(asked: AskedPod, found: _Found, devices: Devices) -> Iterator[Json]:
    named: dict[str, list[DeviceSeries]] = {}
    for series in asked.snapshot.naming(asked.pod.ref):
        if not series.serves:
            named.setdefault(series.device.id, []).append(series)
    parts: dict[str, list[tuple[Metric, DeviceReading]]] = {}
    for metric, reading in found:
        for part in reading.devices if isinstance(reading, Reading) else ():
            parts.setdefault(part.device, []).append((metric, part))
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
    found: _Found

    def fields(self, devices: Devices) -> Json:
        """Return the fields; those that are empty are not known."""
        reported = self._reported(devices)
        all_series = self.named or reported
        idle = device_idle(reported, self.asked.snapshot, self.asked.now)
        newest = max(all_series, key=lambda series: series.received, default=None)
        times = [part.time for _, part in self.parts]
        containers = {series.assignment.container for series in self.named if series.assignment}
        busy = {part.attribution for metric, part in self.parts if metric.name == UTILIZATION}
        hows = busy or {part.attribution for _, part in self.parts}
        return {
            "device": self.id,
            "gpu": devices.name_of(self.id),
            "model": newest.device.model if newest is not None else "",
            "migProfile": newest.device.mig_profile if newest is not None else "",
            "node": newest.node or "" if newest is not None else "",
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


def _parts(asked: AskedPod, found: _Found) -> Iterator[Json]:
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
    asked: AskedPod, found: _Found, device: str, newest: DeviceSeries | None
) -> list[Json]:
    """Return the reasons for which a device, or a part of a server, has no part in values."""
    reasons = Reasons(asked.snapshot, asked.pod)
    for metric, reading in found:
        for absence in reading.left_out:
            if absence.device == device:
                reasons.add(absence, metric)
    return reasons.listed(newest)


WORKLOAD: Final = {
    "apiVersion": text("API version of the workload."),
    "kind": text("Kind of the workload, such as Deployment."),
    "name": text("Name of the workload."),
}
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
SCHEMA: Final = struct(
    "A pod that holds a GPU, or an inference server that is scraped, with the explanation of each "
    "of its values. Absent fields are not known; a missing value is never 0.",
    node=text("Node of the pod."),
    phase=text("Phase of the pod. Only a running pod has values."),
    ready=boolean("Whether the pod is ready."),
    workload=struct(
        "The topmost workload that the pod is known to belong to. Absent for a bare pod.",
        **WORKLOAD,
    ),
    requests=mapping(
        "GPU resources that the pod requests, such as nvidia.com/gpu.",
        integer("Number of devices, or another amount of the resource."),
    ),
    resourceClaims=boolean("True if the pod has DRA resource claims, which may hold a GPU."),
    measured=boolean(
        "Whether gpu_utilization has a value or, for a server without a GPU, a metric of it."
    ),
    reason=struct("Why the pod is not measured.", **WHOLE_REASON),
    metrics=listed("Every metric that has a value.", struct("A metric of the pod.", **VALUE)),
    absent=listed("Every other metric that applies to the pod, by reason.", ABSENT),
    devices=listed(
        "Every device that has, or could have, a part in a value of the pod.",
        struct(
            "A device.",
            device=text("Identity of the device, such as its UUID."),
            gpu=text("Name of the device's object: kubectl get gpus NAME."),
            model=text("Model of the device."),
            migProfile=text("Profile of the MIG instance or partition."),
            node=text("Node of the device, if it is certain."),
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
    ),
    server=listed(
        "The parts of the inference server in the pod, such as its engines or models.",
        struct(
            "A part of the server.",
            part=text("Labels that distinguish the part."),
            values=listed("The part's values.", struct("A value of the part.", **_PART)),
            leftOut=_LEFT_OUT,
        ),
    ),
    idleSince=IDLE,
    hpas=ASKING,
    hpasNotShown=MORE,
)
