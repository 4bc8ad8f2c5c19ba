"""Simulated GPUs on a real node: which pods hold them, and how busy they are.

A node of a real cluster may claim devices that it does not have (Kubernetes, "Advertise Extended
Resources for a Node"). The scheduler then binds pods to them as to any others.

``demo --exporter`` shows them as dcgm-exporter would. It reads pods and Deployments every two
seconds and writes nothing. While the API server does not answer, the page does not change, like
the page of an exporter whose kubelet is down.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from adapter import __version__
from adapter.demo.exporters import Exporters
from adapter.demo.hardware import DemoDevice, DemoPool, make_node
from adapter.demo.page import DeviceHolder, text
from adapter.pipeline.cluster.manifest import MetaManifest, PodDecoder
from adapter.pipeline.cluster.pod import Pod
from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import connect
from apiservice.kube.failures import ClusterError

RESOURCE = "nvidia.com/gpu"
GPUS = 8
"""GPUs of a node."""
LOAD = "gpu-metrics-adapter.io/simulated-load"
"""Annotation of a Deployment: its work, in percent of one GPU."""
_MEMORY_SHARE = 0.5


class Load(NamedTuple):
    """Work that a Deployment's ready pods share evenly."""

    namespace: str
    labels: Mapping[str, str]
    """``spec.selector.matchLabels``."""
    percent: float
    """Percent of one GPU: 280 keeps four GPUs at 70 percent."""

    def selects(self, pod: Pod) -> bool:
        """Return whether it is one of the Deployment's pods."""
        return pod.ref.namespace == self.namespace and self.labels.items() <= pod.labels.items()


class SimulatedGpus:
    """The GPUs of one node."""

    def __init__(self, node: str) -> None:
        pool = DemoPool(node, RESOURCE, "NVIDIA H100 80GB HBM3", gpus=GPUS, memory_mib=81559)
        self._node = make_node(node, pool, ordered_at=0.0, ready_at=0.0)
        self._holders: dict[DemoDevice, Pod] = {}

    def update(self, pods: Iterable[Pod], loads: Sequence[Load]) -> None:
        """Take the pods of the whole cluster. A pod keeps its GPUs while it has a node. A pod that
        finds too few free GPUs gets those that are free."""
        holding = [pod for pod in pods if pod.gpus.get(RESOURCE) and not pod.finished]
        here = {pod.uid: pod for pod in holding if pod.node == self._node.name}
        taken = {device: here[pod.uid] for device, pod in self._holders.items() if pod.uid in here}
        free = [device for device in self._node.devices if device not in taken]
        for pod in here.values():
            held = sum(holder is pod for holder in taken.values())
            while held < pod.gpus[RESOURCE] and free:
                taken[free.pop(0)] = pod
                held += 1
        self._holders = taken
        for device in self._node.devices:
            device.record(_busy_share(taken.get(device), holding, loads), keep=1)

    def page(self) -> bytes:
        """Return the page that dcgm-exporter would serve now."""
        return text(self._node, self._holder)

    def _holder(self, device: DemoDevice) -> DeviceHolder | None:
        pod = self._holders.get(device)
        if pod is None:
            return None
        container = pod.containers[0] if pod.containers else ""
        return DeviceHolder(pod.ref.namespace, pod.ref.name, container, _MEMORY_SHARE)


def _busy_share(holder: Pod | None, holding: Iterable[Pod], loads: Iterable[Load]) -> float:
    """Return the busy share of a GPU of this pod, 0 to 1. A pod that is not ready does no work."""
    if holder is None or not _serves(holder):
        return 0.0
    percent = 0.0
    for load in loads:
        if load.selects(holder):
            among = sum(pod.gpus[RESOURCE] for pod in holding if load.selects(pod) and _serves(pod))
            percent += load.percent / among
    return min(1.0, percent / 100)


def _serves(pod: Pod) -> bool:
    return pod.ready and not pod.deleting


log = structlog.get_logger(__name__)

_INTERVAL = 2.0
"""Seconds between two reads of the cluster."""


class StandInError(Exception):
    """The exporter cannot start; the message names the cause and the fix."""


class _Selector(msgspec.Struct):
    matchLabels: dict[str, str] | None = None  # noqa: N815 - as the API spells it


class _Spec(msgspec.Struct):
    selector: _Selector = msgspec.field(default_factory=_Selector)


class _Deployment(msgspec.Struct):
    metadata: MetaManifest
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Pods(msgspec.Struct):
    items: list[msgspec.Raw]


class _Deployments(msgspec.Struct):
    items: list[_Deployment]


_pods = msgspec.json.Decoder(_Pods)
_deployments = msgspec.json.Decoder(_Deployments)


def run(node: str, port: int) -> None:
    """Serve the node's page on every address until SIGTERM or SIGINT.

    Raises:
        StandInError: no cluster is found, or the port cannot be used.
    """
    asyncio.run(_serve(node, port))


async def _serve(node: str, port: int) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopping.set)
    try:
        client: Any = await connect(user_agent=f"gpu-metrics-adapter-demo/{__version__}")
    except ClusterError as error:
        raise StandInError(str(error)) from None
    gpus = SimulatedGpus(node)
    exporters = Exporters(lambda _: gpus.page(), host="", port=port)
    following = asyncio.create_task(_follow(client, gpus, exporters, node))
    ended = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((following, ended), return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            await following
    finally:
        following.cancel()
        await asyncio.wait((following,))
        await exporters.close()
        await client.close()


async def _follow(client: Any, gpus: SimulatedGpus, exporters: Exporters, node: str) -> None:
    """Follow the cluster. Listens only once it has been read, so that no page is invented."""
    reported = ""
    while True:
        try:
            gpus.update(*await _read(client))
            problem = ""
        except (ClusterAnswerError, msgspec.DecodeError) as error:
            problem = str(error)
        if problem != reported:
            log.warning("the page stays as it was", error=problem) if problem else log.info(
                "page follows the cluster again"
            )
            reported = problem
        if not problem:
            try:
                await exporters.match({node})
            except OSError as error:
                raise StandInError(f"cannot listen: {error}; choose another --port") from None
        await asyncio.sleep(_INTERVAL)


async def _read(client: Any) -> tuple[list[Pod], list[Load]]:
    decoder = PodDecoder()
    pods = _pods.decode(await call(client, "GET", "/api/v1/pods")).items
    deployments = _deployments.decode(await call(client, "GET", "/apis/apps/v1/deployments")).items
    return [decoder.decode(pod) for pod in pods], list(_loads(deployments))


def _loads(deployments: Sequence[_Deployment]) -> Iterator[Load]:
    """The loads in annotations; a value that is not a number of at least 0 is ignored."""
    for deployment in deployments:
        meta = deployment.metadata
        stated = (meta.annotations or {}).get(LOAD, "")
        labels = deployment.spec.selector.matchLabels
        if labels and stated.isascii() and stated.isdigit():
            yield Load(meta.namespace, labels, float(stated))
