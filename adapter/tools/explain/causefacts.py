"""Reads what the causes of one HPA follow from, with the caller's rights.

What may not be read is left out and named: the other causes are still found.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from adapter.answers.causes import (
    Cause,
    ClusterFacts,
    KubeKey,
    ScalerFacts,
    causes_of,
    causes_of_pod,
    nodeautoscalers,
    scaler_of,
)
from adapter.answers.causes.amounts import lacking_resources
from adapter.answers.causes.metricsapis import OF_TYPES
from adapter.pipeline.cluster.evictions import UNSPACED_EVENTS
from adapter.pipeline.cluster.objects import (
    ApiService,
    Lease,
    ResourceSlice,
    SeenEvent,
    SeenNode,
    SeenNodeClaim,
    decode,
    read,
)
from adapter.pipeline.cluster.podobjects import SeenPod, decode_pod, read_pod
from adapter.pipeline.cluster.workload import plural
from adapter.pipeline.cluster.workloadobjects import (
    SeenCronJob,
    SeenWorkload,
    decode_workload,
    read_workload,
)
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.factreader import FactReader
from apiservice.labels.selector import SelectorError, parse
from apiservice.wire import instant

T = TypeVar("T")

_VERSION: Final = re.compile(r"(?:[a-z0-9]+(?:[.-][a-z0-9]+)*/)?v[a-z0-9]+")
_APPS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
_GROUPS: Final = ("apps", "extensions")
_INNER: Final = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
"""Kinds that stand between a Deployment or StatefulSet and its pods."""
_SILENT: Final = (0, 502, 503, 504)
"""Status of an answer that did not come from the server of a metrics API."""
_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
NODECLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
_APISERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"


class ReadCauses(NamedTuple):
    """The causes of an HPA, and what could not be read for them."""

    causes: Sequence[Cause] = ()
    unread: Sequence[str] = ()


NO_CAUSES: Final = ReadCauses()


class Around(NamedTuple):
    """What was read of an HPA already."""

    hpa: Json
    now: float
    replicas: int | None = None
    """None if the scale cannot be read."""
    selector: str = ""
    pods: Sequence[Json] = ()
    """Those that the selector matches."""
    events: Sequence[Json] = ()
    """Those about the HPA."""
    problems: Mapping[str, ClientError] = {}
    """API group of metrics -> why it gave no values."""


async def read_causes(api: Api, around: Around) -> ReadCauses:
    """Return the causes of an HPA; what cannot be read is named."""
    hpa = scaler_of(around.hpa)
    reader = FactReader(api, {})
    pods = [read_pod(row) for row in around.pods]
    within = f"namespaces/{quote(hpa.namespace)}"
    workloads = asyncio.gather(
        _target(reader, hpa),
        _inner_workloads(reader, hpa, around.selector),
        _pods_of_chain(reader, hpa),
    )
    events, nodes, others, slices, apis, lease = await asyncio.gather(
        _events(reader, within, pods),
        _nodes(reader, pods),
        _holders(reader, pods),
        _slices(reader, pods),
        _apiservices(reader, hpa, around.problems),
        reader.read_one(_LEASE, partial(read, kind=Lease), "the lease of kube-controller-manager"),
    )
    target, inner, more = await workloads
    elsewhere = await _read_namesakes(reader, hpa) if around.replicas is None else []
    cronjobs = await _cronjobs(reader, within) if around.replicas == 0 else []
    all_pods = {pod.key: pod for pod in (*others, *pods, *more)}
    claims, warnings = await _claims(reader, events)
    events += warnings
    facts = ClusterFacts(
        around.now,
        claims=claims,
        workloads=[*([target] if target is not None else ()), *inner],
        pods=list(all_pods.values()),
        events=[*events, *(read(row, SeenEvent) for row in around.events)],
        nodes=nodes,
        slices=slices,
        cronjobs=cronjobs,
        apiservices=apis,
        unanswered={
            group: error.answer or error.brief
            for group, error in around.problems.items()
            if error.status in _SILENT
        },
        refused=frozenset(
            group
            for group, error in around.problems.items()
            if error.status == HTTPStatus.NOT_FOUND
        ),
        controller_seen=instant.read(lease.spec.renew_time) if lease is not None else None,
        elsewhere=elsewhere,
    )
    try:
        selector = parse(around.selector) if around.selector else None
    except SelectorError:
        selector = None
    causes = causes_of(facts, hpa, replicas=around.replicas, selector=selector)
    return ReadCauses(causes, list(reader.unread))


async def read_pod_causes(api: Api, pod: Json, events: Sequence[Json], now: float) -> ReadCauses:
    """Return why a pod has no node or does not serve.

    Args:
        pod: its manifest.
        events: those about it.
        now: epoch seconds.
    """
    reader, seen_pod = FactReader(api, {}), read_pod(pod)
    nodes, others, slices = await asyncio.gather(
        _nodes(reader, [seen_pod]), _holders(reader, [seen_pod]), _slices(reader, [seen_pod])
    )
    seen_events = [read(row, SeenEvent) for row in events]
    claims, warnings = await _claims(reader, seen_events)
    seen_events += warnings
    pods = [*(row for row in others if row.key != seen_pod.key), seen_pod]
    facts = ClusterFacts(
        now, pods=pods, events=seen_events, nodes=nodes, slices=slices, claims=claims
    )
    return ReadCauses(causes_of_pod(facts, seen_pod), list(reader.unread))


async def _target(reader: FactReader, hpa: ScalerFacts) -> SeenWorkload | None:
    version, kind = hpa.api_version or "v1", hpa.kind
    if kind in _APPS and version.partition("/")[0] in _GROUPS:
        version = "apps/v1"  # the controller asks for the group and kind in any served version
    if not _VERSION.fullmatch(version) or not kind:
        return None  # the scale cannot be read either
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"{root}/namespaces/{quote(hpa.namespace)}/{quote(plural(kind))}"
    path = f"{place}/{quote(hpa.target, safe='')}"
    return await reader.read_one(path, partial(read_workload, kind), f"{kind} {hpa.target}")


async def _inner_workloads(
    reader: FactReader, hpa: ScalerFacts, selector: str
) -> list[SeenWorkload]:
    """Return the workloads between the target and its pods.

    Those of a Deployment have its labels. The StatefulSets of a LeaderWorkerSet need not.
    """
    if not selector:
        return []
    of_apps = hpa.kind in _APPS
    labels, kinds = (selector, _INNER) if of_apps else ("", {**_APPS, **_INNER})
    inner: list[SeenWorkload] = []
    for kind, resource in kinds.items():
        path = f"/apis/apps/v1/namespaces/{quote(hpa.namespace)}/{resource}"
        inner += await reader.read_list(
            path, partial(decode_workload, kind), resource, labels=labels
        )
    target = (hpa.kind, hpa.target)
    return [row for row in inner if (row.kind, row.metadata.name) != target]


async def _pods_of_chain(reader: FactReader, hpa: ScalerFacts) -> list[SeenPod]:
    """Return the namespace's pods for a target whose selector need not match all of its own."""
    if hpa.kind in (*_APPS, "ReplicaSet"):
        return []
    return await reader.read_list(
        f"/api/v1/namespaces/{quote(hpa.namespace)}/pods", decode_pod, "pods"
    )


def _waits(pod: SeenPod) -> bool:
    row = pod.status.of("PodScheduled")
    return pod.pod.phase == "Pending" and row is not None and row.status == "False"


async def _events(reader: FactReader, within: str, pods: Sequence[SeenPod]) -> list[SeenEvent]:
    """Return the warnings, and what a node autoscaler says of pods that wait for a node."""
    waits = (f"reason={reason}" for reason in ("NotTriggerScaleUp", nodeautoscalers.NOMINATED))
    kinds = ["type=Warning", *(waits if any(map(_waits, pods)) else ())]
    rows = [
        reader.read_list(
            f"/api/v1/{within}/events", partial(decode, kind=SeenEvent), "events", fields=kind
        )
        for kind in kinds
    ]
    return [event for events in await asyncio.gather(*rows) for event in events]


async def _claims(
    reader: FactReader, events: Sequence[SeenEvent]
) -> tuple[list[SeenNodeClaim], list[SeenEvent]]:
    """Return Karpenter's NodeClaims and the warnings about them, if it has named one to a pod.

    Events about an object without a namespace are in the namespace default.
    """
    if not nodeautoscalers.nominated_claims(events):
        return [], []
    fields = f"involvedObject.kind={nodeautoscalers.KIND},type=Warning"
    claims, warnings = await asyncio.gather(
        reader.read_list(NODECLAIMS, partial(decode, kind=SeenNodeClaim), "nodeclaims"),
        reader.read_list(
            UNSPACED_EVENTS,
            partial(decode, kind=SeenEvent),
            "events about nodeclaims",
            fields=fields,
        ),
    )
    return claims, warnings


async def _holders(reader: FactReader, pods: Sequence[SeenPod]) -> list[SeenPod]:
    """Return the pods that hold GPUs, or what else these wait for with their GPUs."""
    waiting = [pod for pod in pods if _waits(pod) and pod.pod.gpus]
    if not waiting:
        return []
    rows = (pod.status.of("PodScheduled") for pod in waiting)
    amounts = any(lacking_resources(row.message) for row in rows if row is not None)
    all_pods = await reader.read_list("/api/v1/pods", decode_pod, "pods of all namespaces")
    return [pod for pod in all_pods if pod.pod.node and (pod.pod.gpus or amounts or _fails(pod))]


def _fails(pod: SeenPod) -> bool:
    """Return whether it is one of a DaemonSet that is not ready, such as that of the driver."""
    owner = pod.pod.owner
    return owner is not None and owner.kind == "DaemonSet" and not pod.pod.ready


async def _nodes(reader: FactReader, pods: Sequence[SeenPod]) -> list[SeenNode] | None:
    if all(pod.pod.ready for pod in pods):
        return None
    before = len(reader.unread)
    nodes = await reader.read_list("/api/v1/nodes", partial(decode, kind=SeenNode), "nodes")
    return nodes if nodes or len(reader.unread) == before else None


async def _slices(reader: FactReader, pods: Sequence[SeenPod]) -> list[ResourceSlice] | None:
    if not any(_waits(pod) and pod.spec.resource_claims for pod in pods):
        return None
    before = len(reader.unread)
    slices = await reader.read_list(SLICES, partial(decode, kind=ResourceSlice), "resourceslices")
    return slices if slices or len(reader.unread) == before else None


async def _apiservices(
    reader: FactReader, hpa: ScalerFacts, problems: Mapping[str, ClientError]
) -> dict[str, ApiService] | None:
    """Return the registrations of the groups that gave no values; None if nothing is known."""
    groups = {OF_TYPES[kind].group for kind, _ in hpa.metrics if kind in OF_TYPES}
    if not groups & problems.keys():
        return None
    before = len(reader.unread)
    rows = await reader.read_list(_APISERVICES, partial(decode, kind=ApiService), "apiservices")
    if not rows and len(reader.unread) > before:
        return None
    # An API server lists its own groups: an empty list answers nothing.
    return {row.metadata.name: row for row in rows} or None


async def _cronjobs(reader: FactReader, within: str) -> list[SeenCronJob]:
    path = f"/apis/batch/v1/{within}/cronjobs"
    return await reader.read_list(path, partial(decode, kind=SeenCronJob), "cronjobs")


async def _read_namesakes(reader: FactReader, hpa: ScalerFacts) -> list[KubeKey]:
    """Return the objects of other namespaces that have the target's kind and name."""
    resource = _APPS.get(hpa.kind)
    if resource is None:
        return []
    rows = await reader.read_list(
        f"/apis/apps/v1/{resource}",
        partial(decode_workload, hpa.kind),
        f"{resource} of other namespaces",
        fields=f"metadata.name={hpa.target}",
    )
    return [KubeKey(row.metadata.namespace, row.kind, row.metadata.name) for row in rows]
