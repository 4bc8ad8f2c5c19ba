"""The resource ``gpupods``: pods that hold a GPU, and inference servers that are scraped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.promises.ratios import PromisedRatios
from adapter.answers.view import podobject
from adapter.answers.view.devices import Devices
from adapter.answers.view.fragments import Json
from adapter.answers.view.owner import scalable_workloads
from adapter.answers.view.pernamespace import PerNamespace
from adapter.answers.view.podvalues import UTILIZATION, AskedPod, principal_reading
from adapter.answers.view.snapshots import CurrentValues, check
from adapter.figures import age, memory, number, percent, short_number
from adapter.pipeline.attribution.credibility import requested_devices
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod, PodRef
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import Steps, parts
from apiservice.view.resource import Cell, Column, Key, RawCell, ViewResource

_STEP: Final = 256
"""Pods that one step of a list looks at."""


def _devices(measured: int, requested: int) -> str:
    return f"{measured}/{requested}" if requested > measured else str(measured)


def _seconds(seconds: float) -> str:
    return f"{number(seconds)}s"


def _window(seconds: float) -> str:
    return f"{seconds}s"


GPUPODS: Final = ViewResource(
    plural="gpupods",
    singular="gpupod",
    kind="GpuPod",
    short_names=("gpod",),
    namespaced=True,
    columns=(
        Column(
            "Util",
            "Utilization of the pod's GPUs: gpu_utilization, in percent.",
            numbers=("Util-Percent",),
            write=percent,
        ),
        Column(
            "Mem",
            "Memory that is used on the pod's GPUs: gpu_memory_used_bytes.",
            numbers=("Mem-Bytes",),
            write=memory,
        ),
        Column(
            "Waiting",
            "Requests that wait in the inference server.",
            numbers=("Waiting-Requests",),
            write=short_number,
        ),
        Column(
            "Running",
            "Requests that the inference server works on.",
            numbers=("Running-Requests",),
            write=short_number,
        ),
        Column(
            "Devices",
            "Devices with a value, and how many the pod requests if it is more.",
            numbers=("Devices-Measured", "Devices-Requested"),
            write=_devices,
        ),
        Column("How", "How the value follows from the devices': exact, copied, split or derived."),
        Column("Age", "Time since the value was measured.", numbers=("Age-Seconds",), write=age),
        Column("Why-Not", "Code of the reason why the pod has no value."),
        Column("Node", "Node of the pod.", wide=True),
        Column("Device-IDs", "Devices of the value.", wide=True),
        Column("Series", "The exporter's series of the value.", wide=True),
        Column(
            "Window",
            "Window of the value's mean.",
            wide=True,
            numbers=("Window-Seconds",),
            write=_window,
        ),
        Column(
            "First-Token",
            "Time to the first token, p90 of the last minute; read while somebody asks for it.",
            wide=True,
            numbers=("First-Token-Seconds",),
            write=_seconds,
        ),
        Column("Unhealthy", "Devices of the pod that the kubelet reports unhealthy.", wide=True),
    ),
    schema=podobject.SCHEMA,
    fields=("node", "phase", "measured"),
    categories=("gpu-metrics",),
)


class GpuPods:
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        values: the current values.
        pods: the known pods.
        devices: the names of the devices.
        hpas: the known HPAs.
        ratios: the promises that queries state.
    """

    def __init__(
        self,
        values: CurrentValues,
        pods: PodIndex,
        devices: Devices,
        hpas: Hpas,
        ratios: PromisedRatios | None = None,
    ) -> None:
        self._values = values
        self._pods = pods
        self._devices = devices
        self._hpas = hpas
        self._ratios = ratios or PromisedRatios(pods)
        self._keys = PerNamespace(pods, self._list_keys)

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        check(self._pods)
        namespaces = self._pods.namespaces() if namespace is None else (namespace,)
        yield from self._keys.refresh(namespaces, (yield from self._values.snapshot.on_pages()))
        keys: list[Key] = []
        for name in namespaces:
            keys += self._keys.of(name) or ()
        return keys

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        check(self._pods)
        yield from self._devices.refresh(self._values.snapshot)

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        pod = self._pods.get(*key)
        return pod.labels if pod is not None else {}

    def fields(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        pod = self._pods.get(*key)
        if pod is None:
            return {}
        measured = isinstance(principal_reading(self._asked_pod(pod, time.time())), Reading)
        return {"node": pod.node, "phase": pod.phase, "measured": str(measured).lower()}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        pod = self._pods.get(*key)
        if pod is None or pod.finished:
            return None
        asked_pod = self._asked_pod(pod, now)
        busy = asked_pod.reading(UTILIZATION) if asked_pod.holds_gpu else None
        serves = asked_pod.serves
        if busy is None and not serves:
            return None
        return (
            busy.value if isinstance(busy, Reading) else None,
            asked_pod.memory(busy) if busy is not None else None,
            asked_pod.waiting if serves else None,
            asked_pod.running if serves else None,
            *_value_cells(busy, asked_pod, now),
            asked_pod.first_token if serves else None,
            "; ".join(pod.unhealthy) or None,
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        pod = self._pod(key)
        if pod is None:
            return None
        hpas = self._hpas.of(key.namespace, scalable_workloads(pod))
        promised = tuple(self._ratios.stated_promises(pod, now))
        return podobject.build_object(self._asked_pod(pod, now), self._devices, hpas, promised)

    def _list_keys(self, namespace: str, on_pages: frozenset[PodRef]) -> Steps[Sequence[Key]]:
        keys: list[Key] = []
        for some in parts((yield from self._pods.select_in_steps(namespace, EVERYTHING)), _STEP):
            keys += [Key(*pod.ref) for pod in some if is_shown(pod, on_page=pod.ref in on_pages)]
            yield
        return keys

    def _pod(self, key: Key) -> Pod | None:
        """Return the pod if the resource has it."""
        pod = self._pods.get(*key)
        if pod is None:
            return None
        snapshot = self._values.snapshot
        on_page = snapshot.serves(pod.ref) or snapshot.holds(pod)
        return pod if is_shown(pod, on_page=on_page) else None

    def _asked_pod(self, pod: Pod, now: float) -> AskedPod:
        return AskedPod(self._values.snapshot, pod, now)


def is_shown(pod: Pod, *, on_page: bool) -> bool:
    """Return whether a pod is listed. A finished pod no longer holds a GPU.

    Args:
        pod: the pod.
        on_page: a page shows that the pod holds a GPU or is a server.
    """
    return (pod.holds_gpu or on_page) and not pod.finished


def _value_cells(
    busy: Reading | Absence | None, asked_pod: AskedPod, now: float
) -> tuple[RawCell, ...]:
    """Return the cells from Devices to Window."""
    pod, main = asked_pod.pod, principal_reading(asked_pod) if busy is None else busy
    if isinstance(main, Absence):
        return None, None, None, str(main.reason), pod.node or None, None, None, None
    devices = main.devices if busy is not None else ()
    return (
        (len(devices), requested_devices(pod)) if devices else None,
        _join_texts([part.attribution.value for part in devices], "+"),
        int(now - main.time),
        None,
        pod.node or None,
        ",".join([part.device for part in devices]) or None,
        _join_texts([part.formula for part in main.devices], ","),
        main.window,
    )


def _join_texts(texts: Sequence[str], joint: str) -> Cell:
    """Return different texts, sorted."""
    if len(texts) == 1:
        return texts[0]
    return joint.join(sorted(set(texts))) or None
