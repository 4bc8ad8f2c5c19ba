"""``demo --exporter``: a substitute for dcgm-exporter on a node of a real cluster without GPUs.

It reads pods and Deployments every two seconds and writes nothing. While the API server does
not answer, the page does not change, like the page of an exporter whose kubelet is down.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import structlog

from adapter import __version__
from adapter.cluster.manifest import MetaManifest, PodDecoder
from adapter.cluster.pod import Pod
from adapter.demo.exporters import Exporters
from adapter.demo.simulatedgpus import LOAD, Load, SimulatedGpus
from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import connect
from apiservice.kube.failures import ClusterError

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
    said = ""
    while True:
        try:
            gpus.update(*await _read(client))
            problem = ""
        except (ClusterAnswerError, msgspec.DecodeError) as error:
            problem = str(error)
        if problem != said:
            log.warning("the page stays as it was", error=problem) if problem else log.info(
                "page follows the cluster again"
            )
            said = problem
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
