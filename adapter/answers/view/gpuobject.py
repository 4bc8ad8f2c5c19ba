"""One GPU, MIG instance or partition as an object of the view API, and the schema of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from adapter.answers.view.devices import Known
from adapter.answers.view.fragments import (
    IDLE,
    MISSING,
    VALUE,
    Json,
    Reasons,
    is_expressible,
    value_fields,
)
from adapter.answers.view.holders import EVIDENCES, holders
from adapter.answers.view.idle import device_idle
from adapter.answers.view.schema import array, integer, struct, text, time
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.sharing import Share
from adapter.pipeline.attribution.unreadseries import NOT_EXPORTED, NOT_OF_INSTANCES
from adapter.pipeline.catalog import amd, ascend, gaudi, intel, nvidia
from adapter.pipeline.catalog.health import SIGNS
from adapter.pipeline.catalog.labelvalue import label_value
from adapter.pipeline.catalog.metric import Metric, Scope
from adapter.pipeline.cluster.nodelabels import (
    AMD,
    INSTANCE_TYPE,
    INTEL,
    NVIDIA,
    POOL_LABELS,
    NodeFacts,
    capacity_type,
)
from adapter.pipeline.devices.device import Device
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.wire import instant

UTILIZATION: Final = "gpu_utilization"
_ABOUT_PODS: Final = frozenset(
    (
        "gpu_count",
        "gpu_utilization_imbalance",
        "gpu_utilization_max",
        "gpu_utilization_of_request",
    )
)
"""Metrics that state nothing about one device: its utilisation, 1 or nothing."""
_BY_FIELD: Final[Mapping[str, str]] = {
    field.name: vendor
    for vendor, module in (
        *((NVIDIA, nvidia), (AMD, amd), (INTEL, intel)),
        *(("habana", gaudi), ("huawei", ascend)),
    )
    for field in module.FIELDS
}
_NODE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    INSTANCE_TYPE,
    *POOL_LABELS,
)
"""Labels of a node that are repeated on its GPUs, so that a selector can use them."""


class Gpu(NamedTuple):
    """A device with all that its fields are computed from."""

    known: Known
    all_series: Sequence[DeviceSeries]
    """At least one."""
    share: Share | None
    facts: NodeFacts
    """Of its node."""

    @property
    def device(self) -> Device:
        """The device as its newest samples describe it."""
        return self.newest.device

    @property
    def newest(self) -> DeviceSeries:
        """The device series with the newest scrape result."""
        if len(self.all_series) == 1:
            return self.all_series[0]
        return max(self.all_series, key=lambda series: series.received)

    @property
    def model(self) -> str:
        """The model as the page names it, or else as the node's labels do."""
        for series in self.all_series:
            if series.device.model:
                return series.device.model
        return self.facts.model

    @property
    def vendor(self) -> str:
        """The vendor; empty if neither fields nor labels nor the model show it."""
        for series in self.all_series:
            for field in series.history.layout.of_field:
                if field in _BY_FIELD:
                    return _BY_FIELD[field]
        if self.facts.vendor:
            return self.facts.vendor
        model = self.model.lower()
        return next((vendor for vendor in (NVIDIA, AMD, INTEL) if vendor in model), "")

    @property
    def strategy(self) -> str:
        """How several pods have the device: ``time-slicing``, ``mps``; empty if they do not."""
        if self.share is None and not any(series.shared for series in self.all_series):
            return ""
        return self.facts.strategy or "shared"

    @property
    def sharing(self) -> str:
        """``exclusive``, ``mig``, or how several pods have the device."""
        return self.strategy or ("mig" if self.device.mig else "exclusive")

    @property
    def newest_sample(self) -> float | None:
        """Epoch seconds of the newest sample; None if there is none."""
        times = [series.history.times[-1] for series in self.all_series if series.history.times]
        return max(times, default=None)


def labels(gpu: Gpu, node: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of the object.

    Args:
        gpu: the device.
        node: the labels of its node.
    """
    pairs = (
        ("node", label_value(gpu.known.node)),
        ("vendor", gpu.vendor),
        ("model", label_value(gpu.model)),
        ("mig-profile", label_value(gpu.device.mig_profile)),
        ("sharing", label_value(gpu.sharing)),
    )
    gpu_labels = {key: value for key, value in pairs if value}
    if node:
        if capacity := label_value(capacity_type(node)):
            gpu_labels["capacity-type"] = capacity
        gpu_labels.update((key, node[key]) for key in _NODE_LABELS if node.get(key))
    return gpu_labels


def fields(gpu: Gpu, snapshot: Snapshot, now: float) -> Json:
    """Return the fields of the object, without its metadata."""
    device, known = gpu.device, gpu.known
    sample = gpu.newest_sample
    values, left_out = _values(gpu, snapshot, now)
    idle = (
        None
        if _has_only_placeholders(gpu, snapshot)
        else device_idle(gpu.all_series, snapshot, now)
    )
    body: Json = {
        "node": known.node,
        "index": known.number,
        "uuid": device.id,
        "board": device.board if device.mig else "",
        "model": gpu.model,
        "vendor": gpu.vendor,
        "migProfile": device.mig_profile,
        "exporters": list(known.origins),
        "sampleTime": instant.write(sample) if sample is not None else "",
        "sharing": _sharing(gpu, snapshot),
        "pods": list(_pods(gpu, snapshot)),
        "values": values,
        "leftOut": left_out,
        "unhealthy": why_unhealthy(gpu, snapshot, now),
        "idleSince": instant.write(idle) if idle is not None else "",
    }
    return {key: value for key, value in body.items() if value}


def number(gpu: Gpu, snapshot: Snapshot, name: str, now: float) -> float | None:
    """Return the value of a metric of the device; None without one."""
    metric = snapshot.catalog.metrics.get(name)
    if metric is None:
        return None
    if len(gpu.all_series) == 1:
        sample = snapshot.current_value(gpu.all_series[0], metric, now)
        return None if sample is None else sample.value
    reading = snapshot.device(gpu.all_series, gpu.known.node, metric, now)
    return reading.value if isinstance(reading, Reading) else None


def why_unhealthy(gpu: Gpu, snapshot: Snapshot, now: float) -> str:
    """Return why the device is not healthy, by what its exporters report; empty if it may be."""
    values = ((why, number(gpu, snapshot, name, now)) for name, why in SIGNS.items())
    return "; ".join(text for why, value in values if value is not None and (text := why(value)))


def metrics(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield the metrics that describe a device itself."""
    for metric in snapshot.catalog.neutral:
        if metric.scope is Scope.DEVICE and metric.name not in _ABOUT_PODS:
            yield metric
    for name in SIGNS:
        if name in snapshot.catalog.metrics:
            yield snapshot.catalog.metrics[name]


def _values(gpu: Gpu, snapshot: Snapshot, now: float) -> tuple[list[Json], list[Json]]:
    values, left_out = [], Reasons(snapshot)
    for metric in metrics(snapshot):
        value = snapshot.device(gpu.all_series, gpu.known.node, metric, now)
        if isinstance(value, Reading):
            if is_expressible(value.value):
                of = {"of": "board"} if metric.per_board and gpu.device.mig else {}
                values.append(value_fields(metric, value) | of)
        elif metric.name == UTILIZATION or not _is_unreported(value, gpu):
            left_out.add(value, metric)
    return values, left_out.list_reasons(gpu.newest)


def _is_unreported(absence: Absence, gpu: Gpu) -> bool:
    """Return whether the exporter has no such value."""
    return absence.reason in (NOT_EXPORTED, NOT_OF_INSTANCES)


def _sharing(gpu: Gpu, snapshot: Snapshot) -> Json:
    if not gpu.strategy:
        return {}
    sharing: Json = {"strategy": gpu.strategy}
    if gpu.share is not None:
        sharing["evidence"] = gpu.share.evidence.value
        sharing["pods"] = len(gpu.share.pods)
    policies = {
        snapshot.cluster.options.of(pod.ref.namespace, snapshot.cluster.labels(pod.node)).value
        for pod in (gpu.share.pods if gpu.share is not None else ())
    }
    if policies:
        sharing["policies"] = sorted(policies)
    return sharing


def _has_only_placeholders(gpu: Gpu, snapshot: Snapshot) -> bool:
    """Return whether pods have the device, all of which only hold room for others."""
    having = holders(gpu.all_series, gpu.share, snapshot)
    return bool(having) and all(holder.pod.placeholder for holder in having)


def _pods(gpu: Gpu, snapshot: Snapshot) -> Iterator[Json]:
    for pod, container, evidence in holders(gpu.all_series, gpu.share, snapshot):
        row = {"namespace": pod.ref.namespace, "name": pod.ref.name}
        if container:
            row["container"] = container
        yield row | {"evidence": evidence.value}


SCHEMA: Final = struct(
    "A GPU, a MIG instance or a partition, as its exporter reports it. Values are of the device "
    "itself; they are not divided among its pods. A board with MIG instances is shown by its "
    "instances. Absent fields are not known; a missing value is never 0.",
    node=text("Name of the node. Absent if no sample and no pod shows it."),
    index=text("Number of the GPU on its node, with the MIG instance: 0, 0.mig3."),
    uuid=text("Identity of the device as its exporter names it, such as a UUID."),
    board=text("Identity of the whole GPU, for a MIG instance or a partition."),
    model=text("Model, such as NVIDIA A100-SXM4-40GB."),
    vendor=text("nvidia, amd or intel."),
    migProfile=text("Profile of the MIG instance, such as 1g.5gb, or of the partition (cpx)."),
    exporters=array(
        "The exporters that report the device.",
        text("URL of the exporter's page, or its instance label in the store."),
    ),
    sampleTime=time("When the newest sample of the device was taken."),
    sharing=struct(
        "How several pods share the device. Absent if nothing shows that it is shared.",
        strategy=text("time-slicing, time-sharing or mps; shared if the node does not say which."),
        evidence=text("What shows that it is shared, such as node_replicas or pod_spec."),
        pods=integer("Running pods that are known to share it."),
        policies=array(
            "How its values are divided among these pods; see sharing.policy of the settings.",
            text("copy, equal, memory or exact."),
        ),
    ),
    pods=array(
        "Pods that have the device now.",
        struct(
            "A pod that has the device.",
            namespace=text("Namespace of the pod."),
            name=text("Name of the pod."),
            container=text("Container that has the device, if the samples name one."),
            evidence=text(EVIDENCES),
        ),
    ),
    values=array(
        "Values of the device itself.",
        struct(
            "A value of the device.",
            **{name: part for name, part in VALUE.items() if name != "partial"},
            of=text("board if the value describes the whole GPU of a MIG instance."),
        ),
    ),
    leftOut=array(
        "Metrics that the exporter reports and whose values are not trusted, and the reasons.",
        MISSING,
    ),
    unhealthy=text(
        "Why the device is not healthy, by its exporter: an XID error that no application causes, "
        "or gpu_health of AMD. Absent if nothing shows it."
    ),
    idleSince=IDLE,
)
