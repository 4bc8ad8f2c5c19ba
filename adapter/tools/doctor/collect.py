"""Read the facts of a cluster. Each read that fails ends only the checks that need it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from adapter.answers.causes import nodeautoscalers
from adapter.answers.keda.manifest import SCALEDOBJECTS, read_scaledobject
from adapter.answers.keda.trouble import SeenScaler, addresses_of
from adapter.figures import count
from adapter.pipeline.cluster.evictions import BUDGETS, UNSPACED_EVENTS, SeenBudget
from adapter.pipeline.cluster.metricsapi import pods_path, read_values
from adapter.pipeline.cluster.objects import (
    ApiService,
    ClusterPolicy,
    ConfigMap,
    Lease,
    ResourceQuota,
    ResourceSlice,
    SeenEvent,
    SeenNode,
    SeenNodeClaim,
    SeenPriorityClass,
    SeenVolumeClaim,
    decode,
    read,
)
from adapter.pipeline.cluster.podobjects import decode_pod, recount_gpus
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, decode_workload
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.doctor import release, rights, rulesfile, scrapes
from adapter.tools.doctor.claims import RESOURCE, read_claim
from adapter.tools.doctor.daemonsets import read_daemonset
from adapter.tools.doctor.facts import Clocks, Fact, Facts, UnreadError
from adapter.tools.doctor.fetch import Fetcher, ProxyFetcher, direct_fetcher
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.rights import unread_error
from adapter.tools.doctor.scalers import read_hpa
from adapter.tools.doctor.valuelesspods import read_without_value
from adapter.tools.explain.causefacts import NODECLAIMS
from adapter.tools.explain.scaledfacts import services_at
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.wire import instant

T = TypeVar("T")

MOST: Final = 150_000
"""Objects of one list that are read: the pods of the largest cluster that Kubernetes supports
(kubernetes.io, "Considerations for large clusters")."""
SECONDS: Final = 120.0
"""Time for all lists of one run."""
_ADDRESSES: Final = 20
"""Addresses of triggers whose Services are read."""
_NAMESPACES: Final = 50
"""Namespaces whose values are read."""
_STATUS: Final = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"
_GKE: Final = "cloud.google.com/gke-nodepool"
_AUTOSCALING: Final = "/apis/autoscaling/v2"
_SLICES: Final = f"{RESOURCE}/resourceslices"
_EVENTS: Final = (
    "type=Warning",
    "reason=SuccessfulRescale",
    "reason=NotTriggerScaleUp",
    f"reason={nodeautoscalers.NOMINATED}",
)
_POLICIES: Final = "/apis/nvidia.com/v1/clusterpolicies"
_COORDINATION: Final = "/apis/coordination.k8s.io/v1"
_CONTROLLER: Final = f"{_COORDINATION}/namespaces/kube-system/leases/kube-controller-manager"
_SCHEDULING: Final = "/apis/scheduling.k8s.io/v1"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
AUTHENTICATION: Final = (
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
)


@dataclass
class Collector:
    """Reads from one API server."""

    api: Api
    inside: bool = False
    """This process runs in a pod of the cluster, and reaches the other pods."""
    notes: list[str] = field(default_factory=list)
    """Parts that were read for an example, such as some of many exporters."""
    unread: list[str] = field(default_factory=list)
    """Objects that no check could look at, one line for each list."""
    deadline: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    namespace: str = ""
    """The only namespace whose HPAs, and what concerns them alone, are read; empty: all."""

    async def facts(self) -> Facts:
        """Read everything that the checks of the cluster need."""
        # The first request decides whether there is a cluster to look at.
        version = await self.api.get("/version")
        facts = Facts(offline=False, now=time.time())
        facts.version = await self.fact(partial(_version, version))
        reads: dict[str, Awaitable[Fact[Any]]] = {
            "groups": self.fact(self._groups),
            "clocks": self.fact(self._clocks),
            "authentication": self.fact(self._authentication),
            "apiservices": self.list_objects(
                "/apis/apiregistration.k8s.io/v1/apiservices", ApiService
            ),
            "nodes": self.list_objects("/api/v1/nodes", SeenNode),
            "leases": self.list_objects(
                f"{_COORDINATION}/namespaces/kube-node-lease/leases", Lease
            ),
            "pods": self.list_pages("/api/v1/pods", decode_pod),
            "workloads": self._workloads(),
            "replicasets": self._replicasets(),
            "events": self._some_events(self._of_users("/api/v1", "events"), _EVENTS),
            "node_events": self._some_events(
                UNSPACED_EVENTS, ("type=Warning", "reason=DisruptionBlocked")
            ),
            "node_claims": self.list_optional(NODECLAIMS, partial(decode, kind=SeenNodeClaim)),
            "budgets": self.list_objects(BUDGETS, SeenBudget),
            "slices": self.list_optional(_SLICES, partial(decode, kind=ResourceSlice)),
            "controller_seen": self.fact(self._controller_seen),
            "daemonsets": self.list_pages("/apis/apps/v1/daemonsets", _whole(read_daemonset)),
            "hpas": self.list_pages(
                self._of_users(_AUTOSCALING, "horizontalpodautoscalers"), _whole(read_hpa)
            ),
            "claims": self.list_optional(
                self._of_users(RESOURCE, "resourceclaims"), _whole(read_claim)
            ),
            "scaledobjects": self.list_optional(
                self._of_users(SCALEDOBJECTS, "scaledobjects"), _whole(read_scaledobject)
            ),
            "volume_claims": self.list_objects(
                self._of_users("/api/v1", "persistentvolumeclaims"), SeenVolumeClaim
            ),
            "policies": self.list_optional(_POLICIES, partial(decode, kind=ClusterPolicy)),
            "priorityclasses": self.list_objects(
                f"{_SCHEDULING}/priorityclasses", SeenPriorityClass
            ),
            "quotas": self.list_objects(self._of_users("/api/v1", "resourcequotas"), ResourceQuota),
        }
        await self._fill(facts, reads)
        facts.release = await self._release(facts, release.SERVE)
        facts.nodepool = await self._release(facts, release.NODEPOOL)
        if facts.pods.known:
            resources = facts.gpu_resources
            facts.pods = Fact([recount_gpus(pod, resources) for pod in facts.pods.read()])
        await self._look_further(facts)
        return facts

    def _of_users(self, prefix: str, plural: str) -> str:
        """Return the path of a collection, of the one namespace or of all."""
        within = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{prefix}{within}/{plural}"

    async def _fill(self, facts: Facts, reads: Mapping[str, Awaitable[Fact[Any]]]) -> None:
        values = await asyncio.gather(*reads.values())
        for name, value in zip(reads, values, strict=True):
            setattr(facts, name, value)

    async def _look_further(self, facts: Facts) -> None:
        """Read what depends on the objects: pages, rights, values."""
        own_release = facts.release.value
        async with direct_fetcher() as near:
            fetcher: Fetcher = near if self.inside else ProxyFetcher(self.api)
            reads: dict[str, Awaitable[Fact[Any]]] = {
                "hpa_rights": self.fact(lambda: rights.hpa_reviews(self.api)),
                "own_rights": self.fact(lambda: rights.own_reviews(self.api, own_release)),
                "pages": self.fact(lambda: scrapes.exporter_pages(fetcher, facts, self.notes)),
                "server_pages": self.fact(lambda: scrapes.server_pages(fetcher, facts, self.notes)),
                "autoscaler": self.fact(lambda: self._autoscaler(facts)),
                "scalers": self.fact(lambda: self._scalers(facts)),
                "measured": self.fact(lambda: self._measured_pods(facts)),
                "without_value": self.list_pages(
                    f"{VIEW}/gpupods", _whole(read_without_value), "measured=false"
                ),
            }
            if own_release is not None:
                reads["delegate_rights"] = self.fact(
                    lambda: rights.delegate_reviews(self.api, own_release)
                )
                reads["rules"] = self.fact(lambda: rulesfile.read_rules_of(self.api, own_release))
                inside = near if self.inside else None
                look = partial(scrapes.self_pages, inside, fetcher, facts, own_release)
                reads["self_pages"] = self.fact(look)
            if facts.settings.source.kind == "prometheus":
                # Here: it loads the library that reads a store.
                from adapter.tools.doctor import store  # noqa: PLC0415

                reads["store"] = self.fact(lambda: store.ask(facts.settings, fetcher))
            await self._fill(facts, reads)

    async def _release(self, facts: Facts, name: str) -> Fact[Release | None]:
        if facts.workloads.unread is not None:
            return Fact(unread=facts.workloads.unread)
        trusted = release.homes(facts.apiservices.value or ())
        workload = release.find(facts.workloads.read(), name, trusted)
        if workload is None:
            return Fact(None)
        pods = facts.pods.value or ()
        wanted = release.configmap_of(workload)
        path = f"/api/v1/namespaces/{workload.metadata.namespace}/configmaps/{quote(wanted)}"
        try:
            data = read(await self.api.get(path), ConfigMap).data if wanted else {}
        except (ClientError, msgspec.ValidationError) as error:
            problem = unread_error(error) if isinstance(error, ClientError) else error
            return Fact(release.release(workload, pods, None, str(problem)))
        return Fact(release.release(workload, pods, data))

    async def _autoscaler(self, facts: Facts) -> str:
        """Return the node autoscaler that can be seen; empty without one."""
        if "karpenter.sh" in facts.groups.read():
            return "Karpenter"
        if any(_GKE in node.metadata.labels for node in facts.nodes.read()):
            return "GKE"
        try:
            await self.api.get(_STATUS)
        except ClientError as error:
            if error.status == 404:
                return ""
            raise
        return "cluster-autoscaler"

    async def _scalers(self, facts: Facts) -> Mapping[str, SeenScaler]:
        addresses = {address for row in facts.scaledobjects.read() for address in addresses_of(row)}
        return await services_at(self.api, sorted(addresses)[:_ADDRESSES])

    async def _measured_pods(self, facts: Facts) -> Mapping[str, frozenset[str]]:
        namespaces = sorted({pod.pod.ref.namespace for pod in facts.gpu_pods})
        if len(namespaces) > _NAMESPACES:
            self.notes.append(f"values were read in {_NAMESPACES} of {len(namespaces)} namespaces")
        measured = {}
        for namespace in namespaces[:_NAMESPACES]:
            try:
                values = read_values(await self.api.get(pods_path(namespace, "gpu_utilization")))
            except ClientError as error:
                if error.status != 404:
                    raise
                values = []
            measured[namespace] = frozenset(value.name for value in values)
        return measured

    async def fact(self, look: Callable[[], Awaitable[T]]) -> Fact[T]:
        """Return the result of a read, or why it failed."""
        try:
            return Fact(await look())
        except UnreadError as error:
            return Fact(unread=error)
        except ClientError as error:
            return Fact(unread=unread_error(error))

    async def list_objects(self, path: str, kind: type[T]) -> Fact[Sequence[T]]:
        """List objects of one kind."""
        return await self.list_pages(path, partial(decode, kind=kind))

    async def list_optional(
        self, path: str, reads: Callable[[msgspec.Raw], T]
    ) -> Fact[Sequence[T]]:
        """List objects of a kind that a cluster may not have."""
        rows = await self.list_pages(path, reads)
        missing = rows.unread is not None and rows.unread.status == 404
        return Fact(()) if missing else rows

    async def list_pages(
        self, path: str, reads: Callable[[msgspec.Raw], T], fields: str = ""
    ) -> Fact[Sequence[T]]:
        """List objects in pages, each decoded before the next page is read."""
        return await self.fact(lambda: self._list(path, reads, fields))

    async def _list(self, path: str, reads: Callable[[msgspec.Raw], T], fields: str) -> Sequence[T]:
        items: list[T] = []
        unreadable = 0
        async for texts in self.api.texts(path, fields=fields):
            if len(items) >= MOST or time.monotonic() > self.deadline:
                self.unread.append(f"{path}: only the first {len(items)} objects were read")
                break
            for text in texts:
                try:
                    items.append(reads(text))
                except (*UNREADABLE, ValueError, TypeError, AttributeError):
                    unreadable += 1
        if unreadable:
            self.unread.append(f"{path}: {count(unreadable, 'object')} could not be decoded")
        return items

    async def _workloads(self) -> Fact[Sequence[SeenWorkload]]:
        kinds = {"deployments": "Deployment", "statefulsets": "StatefulSet"}
        workloads: list[SeenWorkload] = []
        for plural, kind in kinds.items():
            rows = await self.list_pages(f"/apis/apps/v1/{plural}", partial(decode_workload, kind))
            if rows.unread is not None:
                return Fact(unread=rows.unread)
            workloads += rows.read()
        return Fact(workloads)

    async def _replicasets(self) -> Fact[Sequence[SeenWorkload]]:
        """Deployments keep ten old ReplicaSets each, which are of no use."""
        path = self._of_users("/apis/apps/v1", "replicasets")
        rows = await self.list_pages(path, partial(decode_workload, "ReplicaSet"))
        if rows.unread is not None:
            return rows
        return Fact([row for row in rows.read() if row.spec.replicas > 0])

    async def _some_events(self, path: str, kinds: Sequence[str]) -> Fact[Sequence[SeenEvent]]:
        events: list[SeenEvent] = []
        for which in kinds:
            rows = await self.list_pages(path, partial(decode, kind=SeenEvent), which)
            if rows.unread is not None:
                return rows
            events += rows.read()
        return Fact(events)

    async def _controller_seen(self) -> float | None:
        try:
            lease = read(await self.api.get(_CONTROLLER), Lease)
        except ClientError as error:
            if error.status == 404:
                return None
            raise
        return instant.read(lease.spec.renew_time)

    async def _groups(self) -> Mapping[str, frozenset[str]]:
        answer = await self.api.get("/apis")
        return {
            str(group.get("name")): frozenset(
                str(version.get("version")) for version in group.get("versions") or ()
            )
            for group in answer.get("groups") or ()
        }

    async def _clocks(self) -> Clocks:
        before = time.time()
        server = await self.api.clock()
        # The header has whole seconds, so half a second is the best guess.
        middle = (before + time.time()) / 2
        return Clocks(middle - (server + 0.5), server)

    async def _authentication(self) -> Mapping[str, str]:
        try:
            configmap = await self.api.get(AUTHENTICATION)
        except ClientError as error:
            if error.status == 404:
                return {}
            raise
        data: Any = configmap.get("data") or {}
        return {str(key): str(value) for key, value in data.items()}


def _whole(reads: Callable[[Any], T]) -> Callable[[msgspec.Raw], T]:
    """Return a reader of an object's text, by one of its JSON, of which most is kept or read."""
    return lambda text: reads(msgspec.json.decode(text))


async def _version(answer: Json) -> tuple[int, int]:
    text = answer.get("gitVersion")
    match = _VERSION.match(str(text or ""))
    if match is None:
        shown = "no gitVersion" if not text else f"gitVersion {str(text)[:100]!r}"
        raise UnreadError(f"/version of the API server has {shown}", "kubectl get --raw /version")
    return int(match[1]), int(match[2])
