"""The resource ``gpus``: every device of the snapshot, as ``kubectl get gpus`` lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.answers.view import gpuobject
from adapter.answers.view.devices import Devices, device_series, place_of
from adapter.answers.view.fragments import Json
from adapter.answers.view.gpuclass import GpuClass, gpu_class
from adapter.answers.view.gpuobject import UTILIZATION, Gpu, number, why_unhealthy
from adapter.answers.view.holders import holders
from adapter.answers.view.idle import device_idle
from adapter.answers.view.snapshots import CurrentValues, PerSnapshot, check
from adapter.answers.view.standings import NodeStandings
from adapter.figures import age, memory, percent, short_number
from adapter.pipeline.attribution.sharing import NodeSharing
from adapter.pipeline.catalog.health import XID
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Cell, Column, Key, RawCell, ViewResource

_USED: Final = "gpu_memory_used_bytes"
_TOTAL: Final = "gpu_memory_total_bytes"
_POWER: Final = "gpu_power_watts"
_TEMPERATURE: Final = "gpu_temperature_celsius"
_STEP: Final = 32
"""Devices whose use one step finds."""


def _watts(value: float) -> str:
    return f"{short_number(value)}W"


def _degrees(value: float) -> str:
    return f"{short_number(value)}C"


GPUS: Final = ViewResource(
    plural="gpus",
    singular="gpu",
    kind="Gpu",
    short_names=(),
    namespaced=False,
    columns=(
        Column("Node", "Node of the GPU."),
        Column("GPU", "Number of the GPU on its node, with the MIG instance."),
        Column("Model", "Model of the GPU."),
        Column(
            "Util",
            "Utilization of the device: gpu_utilization, in percent.",
            numbers=("Util-Percent",),
            write=percent,
        ),
        Column(
            "Mem",
            "Used and total memory of the device.",
            numbers=("Mem-Bytes", "Mem-Total-Bytes"),
            write=memory,
        ),
        Column("Pods", "Pods that have the device now."),
        Column("Sharing", "How several pods have the GPU: time-slicing, mps, or a MIG profile."),
        Column("Age", "Time since the newest sample.", numbers=("Age-Seconds",), write=age),
        Column("UUID", "Identity of the device.", wide=True),
        Column(
            "Power",
            "Power of the GPU, in watts.",
            wide=True,
            numbers=("Power-Watts",),
            write=_watts,
        ),
        Column(
            "Temp",
            "Temperature of the GPU, in degrees Celsius.",
            wide=True,
            numbers=("Temp-Celsius",),
            write=_degrees,
        ),
        Column(
            "XID",
            "Code of the last XID error; 0 for none.",
            wide=True,
            numbers=("XID-Code",),
            write=short_number,
        ),
        Column(
            "Idle-Since",
            "Time for which the device has been idle.",
            wide=True,
            numbers=("Idle-Seconds",),
            write=age,
        ),
        Column(
            "Unhealthy",
            "What its exporter reports: an XID error that no application causes, or gpu_health.",
            wide=True,
        ),
        Column("Exporter", "Page of the exporter that reports the device.", wide=True),
        Column("Blocked", "Why no GPU pod can start on the node of the GPU.", wide=True),
    ),
    schema=gpuobject.SCHEMA,
    fields=("node", "model", "sharing"),
    categories=("gpu-metrics",),
    order=place_of,
)


class DeviceUse(NamedTuple):
    """A device and what it is used for."""

    node: str
    of: GpuClass
    board: str
    """The board of a MIG instance or partition; empty for a whole GPU."""
    profile: str
    model: str


class Gpus:
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        values: the current values.
        pods: the known pods.
        devices: the names of the devices.
        standings: the nodes.
    """

    def __init__(
        self, values: CurrentValues, pods: PodIndex, devices: Devices, standings: NodeStandings
    ) -> None:
        self._values = values
        self._pods = pods
        self._devices = devices
        self._standings = standings
        self._sharing = PerSnapshot[str, NodeSharing]()

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        check(self._pods)
        yield from self._devices.refresh(self._values.snapshot)
        return self._devices.keys

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        check(self._pods)
        yield from self._devices.refresh(self._values.snapshot)
        self._standings.refresh()

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        gpu = self._gpu(key, self._values.snapshot)
        if gpu is None:
            return {}
        return gpuobject.labels(gpu, self._values.snapshot.cluster.labels(gpu.known.node))

    def fields(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        gpu = self._gpu(key, self._values.snapshot)
        if gpu is None:
            return {}
        return {"node": gpu.known.node, "model": gpu.model, "sharing": gpu.sharing}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        snapshot = self._values.snapshot
        gpu = self._gpu(key, snapshot)
        if gpu is None:
            return None
        used, total, busy, power, temperature, xid = (
            number(gpu, snapshot, name, now)
            for name in (_USED, _TOTAL, UTILIZATION, _POWER, _TEMPERATURE, XID)
        )
        sample, newest = gpu.newest_sample, gpu.newest
        idle = device_idle(gpu.all_series, snapshot, now)
        having, sick = _pods(gpu, snapshot), why_unhealthy(gpu, snapshot, now)
        return (
            gpu.known.node or None,
            gpu.known.number or None,
            gpu.model.removeprefix("NVIDIA ") or None,
            busy,
            None if used is None else (used, total),
            having,
            _sharing(gpu),
            None if sample is None else int(now - sample),
            newest.device.id,
            power,
            temperature,
            xid,
            None if idle is None else int(now - idle),
            sick or None,
            newest.origin,
            self._why_blocked(gpu, having, sick) or None,
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        snapshot = self._values.snapshot
        gpu = self._gpu(key, snapshot)
        if gpu is None:
            return None
        return {
            "metadata": {"name": key.name, "labels": dict(self.labels(key))},
            **gpuobject.fields(gpu, snapshot, now),
        }

    def uses(self, now: float) -> Steps[list[DeviceUse]]:
        """Return what each device is used for, in steps."""
        yield from self.prepare((), now)
        uses: list[DeviceUse] = []
        for keys in parts(tuple(self._devices.keys), _STEP):
            some = (self._use(key, now) for key in keys)
            uses += [use for use in some if use is not None]
            yield
        return uses

    def _use(self, key: Key, now: float) -> DeviceUse | None:
        snapshot = self._values.snapshot
        gpu = self._gpu(key, snapshot)
        if gpu is None:
            return None
        busy, sick = number(gpu, snapshot, UTILIZATION, now), why_unhealthy(gpu, snapshot, now)
        idle = device_idle(gpu.all_series, snapshot, now)
        having = _pods(gpu, snapshot)
        blocked = self._why_blocked(gpu, having, sick) or None
        of = gpu_class(busy, having, None if idle is None else int(now - idle), blocked)
        mig = gpu.device.mig
        return DeviceUse(
            gpu.known.node, of, gpu.device.board if mig else "", gpu.device.mig_profile, gpu.model
        )

    def _why_blocked(self, gpu: Gpu, having: Cell, sick: str) -> str:
        """Return why no pod can start on the node, or get this of its devices."""
        standing = self._standings.of(gpu.known.node)
        if standing is None or standing.text:
            return "" if standing is None else standing.text
        if not (standing.withheld and sick and having is None):
            return ""
        return f"the node does not offer {standing.withheld}, and this GPU is not healthy: {sick}"

    def _gpu(self, key: Key, snapshot: Snapshot) -> Gpu | None:
        device = self._devices.get(key.name)
        if device is None:
            return None
        all_series = device_series(device, snapshot)
        if not all_series:
            return None
        share = self._node_sharing(device.node, snapshot).devices.get(device.id)
        return Gpu(device, all_series, share, snapshot.cluster.facts(device.node))

    def _node_sharing(self, node: str, snapshot: Snapshot) -> NodeSharing:
        """Return who shares the devices of a node; computed once for a node's devices."""
        by_node = self._sharing.of(snapshot)
        sharing = by_node.get(node)
        if sharing is None:
            sharing = by_node[node] = snapshot.sharing(node)
        return sharing


def _pods(gpu: Gpu, snapshot: Snapshot) -> Cell:
    having = holders(gpu.all_series, gpu.share, snapshot)
    if not having:
        return None
    first = "/".join(having[0].pod.ref)
    return first if len(having) == 1 else f"{first} +{len(having) - 1}"


def _sharing(gpu: Gpu) -> Cell:
    if not gpu.device.mig:
        return gpu.strategy or None
    mig = f"mig {gpu.device.mig_profile}".strip()
    return f"{mig} {gpu.strategy}".strip()
