"""Watch an HPA until it has scaled out and in, or the time is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from adapter.pipeline.cluster.gpuresources import devices
from adapter.pipeline.cluster.hpamanifest import decode
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.metricsapi import CUSTOM
from adapter.tools.client.access import Api
from adapter.tools.client.command import FINE
from adapter.tools.client.errors import ClientError
from adapter.tools.client.naming import read_named
from adapter.tools.conformance.claims import ClaimedClasses, Claims, read_claims
from adapter.tools.conformance.evidence import ConformanceEvidence, HpaLook, ScaledPod
from adapter.tools.explain.scaletarget import HPAS, ScaleError, read_scale

Json = dict[str, Any]
_EXPORTER: Final = "app.kubernetes.io/name=dcgm-exporter"
_MOST: Final = 1000
"""Changes after which a watch ends: each is compared with those before it."""
_SIGNS: Final = ("simulated", "kwok", "fake", "demo:")
"""Words in the description of a node that nothing real has: the demo, and kubernetes-sigs/kwok."""


async def watch(
    api: Api,
    name: str,
    seconds: float,
    interval: float,
    *,
    progress: Callable[[HpaLook], None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.time,
) -> ConformanceEvidence:
    """Watch an HPA and return the evidence.

    Args:
        api: the cluster, with the namespace of the HPA.
        name: of the HPA.
        seconds: after which the watch ends, regardless of what was seen.
        interval: seconds between two looks.
        progress: gets each look.
        sleep: waits.
        clock: epoch seconds.

    Raises:
        ClientError: the HPA or its pods cannot be read at first.
    """
    server = str((await api.get("/version")).get("gitVersion") or "unknown")
    simulation, unlooked = await _simulation_signs(api)
    apis = await _versions(api)
    looks: list[HpaLook] = []
    async for look in _looks(api, name, seconds, interval, sleep, clock):
        progress(look)
        if looks and look.state == looks[-1].state:
            continue
        looks.append(look)
        evidence = ConformanceEvidence(server, simulation, unlooked, apis, looks)
        if evidence.status == FINE or len(looks) >= _MOST:
            break
    return ConformanceEvidence(server, simulation, unlooked, apis, looks)


async def _looks(
    api: Api,
    name: str,
    seconds: float,
    interval: float,
    sleep: Callable[[float], Awaitable[None]],
    clock: Callable[[], float],
) -> AsyncIterator[HpaLook]:
    end = clock() + seconds
    yield await _look(api, name, clock())
    while clock() < end:
        await sleep(interval)
        try:
            yield await _look(api, name, clock())
        except ClientError as error:
            if error.status in (401, 403, 404):
                raise
            # The API server may be unreachable for a while: the next look follows.


async def _look(api: Api, name: str, now: float) -> HpaLook:
    hpa = await read_named(api, "HPA", HPAS, "horizontalpodautoscalers", name)
    shown = decode(msgspec.json.encode(hpa))
    try:
        scale = await read_scale(api, {"metadata": {"namespace": api.namespace}, **hpa})
    except ScaleError as error:
        raise ClientError(f"the target of HPA {name} cannot be scaled: {error}") from None
    rows = await api.list(f"/api/v1/namespaces/{api.namespace}/pods", labels=scale.selector)
    return HpaLook(now, shown, list(_pods(rows, await read_claims(api, rows))))


def _pods(rows: Sequence[Json], claims: Claims) -> Iterator[ScaledPod]:
    decoder = PodDecoder()
    for row in rows:
        pod = decoder.decode(msgspec.json.encode(row))
        if not pod.finished and not pod.deleting:
            requested = devices(pod.gpus)
            claimed = ClaimedClasses() if requested else claims.of(row)
            yield ScaledPod(pod.name, pod.node, pod.phase == "Running", requested, *claimed)


async def _versions(api: Api) -> list[str]:
    """Return the versions of the custom metrics API; none if the cluster does not serve it."""
    try:
        group = await api.get(CUSTOM)
    except ClientError as error:
        if error.status == 404:
            return []
        raise
    return [str(row.get("version")) for row in group.get("versions") or ()]


async def _simulation_signs(api: Api) -> tuple[list[str], list[str]]:
    """Return the signs of a simulation, and what could not be looked at."""
    signs: list[str] = []
    unlooked: list[str] = []
    try:
        signs += _odd_nodes(await api.list("/api/v1/nodes"))
    except ClientError as error:
        unlooked.append(f"nodes ({error})")
    try:
        signs += _odd_exporters(await api.list("/api/v1/pods", labels=_EXPORTER))
    except ClientError as error:
        unlooked.append(f"exporters ({error})")
    return signs, unlooked


def _odd_nodes(nodes: Sequence[Json]) -> Iterator[str]:
    odd = []
    for node in nodes:
        meta, spec = node.get("metadata") or {}, node.get("spec") or {}
        info = (node.get("status") or {}).get("nodeInfo") or {}
        words = (*info.values(), spec.get("providerID"), *(meta.get("annotations") or {}))
        if any(sign in str(word).lower() for word in words for sign in _SIGNS):
            odd.append(str(meta.get("name")))
    if odd:
        yield f"{len(odd)} of {len(nodes)} nodes say that they are simulated, such as {odd[0]}"


def _odd_exporters(pods: Sequence[Json]) -> Iterator[str]:
    """Yield the exporters that are stand-ins (docs/examples/simulated-gpus.yaml)."""
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or ():
            arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
            if "demo" in arguments and "--exporter" in arguments:
                meta = pod["metadata"]
                yield f"exporter {meta.get('namespace')}/{meta.get('name')} simulates GPUs"
                return
