"""The watches of one cluster, each with the collection that it updates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.home import Home
from adapter.nodepool.run.changes import (
    ChangeSignal,
    WatchedTable,
    living_gpu_pod,
    requested_nodes,
    requested_pods,
    usable_capacity,
)
from adapter.nodepool.seen import (
    autoscalers,
    claimtemplates,
    headroom,
    jobs,
    karpenter,
    nodes,
    pods,
    priorityclasses,
    status,
    workloads,
)
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.servedapis import ServedApis
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from apiservice.kube.reflector import Reflector

_STALE = 90.0
"""Maximum seconds without data from the API server; each watch is renewed every minute."""


class Watches:
    """Runs the reflectors of a cluster, those of optional APIs when the APIs are served."""

    def __init__(
        self,
        client: Any,
        cluster: ClusterTables,
        home: Home,
        *,
        jobs_too: bool,
        priority_class: str,
        resources: GpuResources = STANDARD,
        changes: ChangeSignal | None = None,
        once: bool = False,
    ) -> None:
        """Create the watches without starting them.

        Args:
            home: the namespaces of headroom.
            priority_class: PriorityClass of placeholder pods.
            resources: those that stand for a GPU.
            changes: notes the changes that start a round immediately.
            once: list each collection, and do not watch it: for one plan.
        """
        self._once = once
        self._client = client
        self._home = home
        self._priority_class = priority_class
        self._resources = resources
        self._cluster = cluster
        self._changes = changes or ChangeSignal()
        self._required = self._required_reflectors(jobs_too=jobs_too)
        self._optional: dict[str, Reflector[Any]] = {
            "status": self._reflector(
                status.PATH,
                status.decode,
                cluster.status,
                fields=f"metadata.name={status.NAME}",
                counts=requested_nodes,
            )
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._buffers = ""
        """Version of the CapacityBuffers that are watched; empty if they are not watched."""

    def start(self, group: asyncio.TaskGroup, served: ServedApis) -> None:
        """Start the missing watches of served APIs. Called after each discovery."""
        if served.karpenter and "node_pools" not in self._optional:
            table = self._cluster
            self._optional["node_pools"] = self._reflector(
                karpenter.POOLS, karpenter.decode_pool, table.node_pools
            )
            self._optional["node_claims"] = self._reflector(
                karpenter.CLAIMS, karpenter.decode_claim, table.node_claims
            )
        if served.buffers != self._buffers:
            self._watch_buffers(served.buffers)
        if served.claims and "claim_templates" not in self._optional:
            self._optional["claim_templates"] = self._reflector(
                claimtemplates.path(served.claims),
                claimtemplates.decode,
                self._cluster.claim_templates,
            )
        for name, reflector in (self._required | self._optional).items():
            if name not in self._tasks:
                self._tasks[name] = group.create_task(reflector.run(once=self._once))

    def _watch_buffers(self, version: str) -> None:
        """Watch this version of CapacityBuffers, or none.

        A plan waits for all watches: it would wait forever for a removed CRD or version.
        """
        if task := self._tasks.pop("buffers", None):
            task.cancel()
        self._buffers = version
        if not version:
            self._optional.pop("buffers", None)
            self._cluster.buffers.replace(())
            return
        self._optional["buffers"] = self._reflector(
            headroom.buffers_path(version),
            headroom.decoder(ProvisioningMethod.BUFFER, self._home, self._resources),
            self._cluster.buffers,
            labels=headroom.SELECTOR,
        )

    def stop(self) -> None:
        """Stop all watches."""
        for task in self._tasks.values():
            task.cancel()

    def problem(self, now: float) -> str:
        """Return why the collections cannot be used for planning; empty if they can.

        Headroom objects are required too: headroom that is not seen would be ordered again.
        """
        for name, reflector in self._needed_reflectors().items():
            if not reflector.synced:
                return reflector.last_error or f"{name} have not been listed yet"
            if reflector.last_error and not reflector.connected:
                return reflector.last_error
            if reflector.age(now) > _STALE:
                return f"no data of {name} for {reflector.age(now):.0f} s"
        return ""

    async def wait_for_lists(self) -> None:
        """Wait until all required collections have been listed once."""
        for reflector in self._needed_reflectors().values():
            await reflector.synced_event.wait()

    @property
    def denied(self) -> bool:
        """Whether the permission for a required collection is missing: waiting does not help."""
        return any(reflector.denied for reflector in self._needed_reflectors().values())

    def reflectors(self) -> Iterator[tuple[str, Reflector[Any]]]:
        """Name -> reflector, for metrics."""
        yield from self._required.items()
        yield from self._optional.items()

    def _needed_reflectors(self) -> dict[str, Reflector[Any]]:
        buffers = self._optional.get("buffers")
        return self._required | ({"buffers": buffers} if buffers is not None else {})

    def _required_reflectors(self, *, jobs_too: bool) -> dict[str, Reflector[Any]]:
        cluster, reflector, gpus = self._cluster, self._reflector, self._resources
        decode_pod = pods.PodInfoDecoder(self._priority_class, gpus).decode
        decode_node = partial(nodes.decode, resources=gpus)
        reflectors = {
            "pods": reflector(
                pods.PATH, decode_pod, cluster.pods, fields=pods.LIVE, counts=living_gpu_pod
            ),
            "nodes": reflector(nodes.PATH, decode_node, cluster.nodes, counts=usable_capacity),
            "autoscalers": reflector(autoscalers.PATH, autoscalers.decode, cluster.autoscalers),
            "classes": reflector(priorityclasses.PATH, priorityclasses.decode, cluster.classes),
            "placeholders": reflector(
                headroom.DEPLOYMENTS,
                headroom.decoder(ProvisioningMethod.PLACEHOLDER, self._home, gpus),
                cluster.placeholders,
                labels=headroom.SELECTOR,
            ),
        }
        for name, kind, table, labels in (
            ("deployments", "Deployment", cluster.deployments, f"!{headroom.SELECTOR}"),
            ("statefulsets", "StatefulSet", cluster.statefulsets, ""),
            ("replicasets", "ReplicaSet", cluster.replicasets, workloads.UNOWNED_REPLICASETS),
        ):
            path, decode = workloads.PATHS[kind], workloads.decoder(kind, gpus)
            reflectors[name] = reflector(path, decode, table, labels=labels, counts=requested_pods)
        if jobs_too:
            decode_job = partial(jobs.decode, resources=gpus)
            reflectors["jobs"] = reflector(jobs.PATH, decode_job, cluster.jobs)
        return reflectors

    def _reflector(
        self,
        path: str,
        decode: Any,
        table: Any,
        *,
        fields: str = "",
        labels: str = "",
        counts: Callable[[Any], object] | None = None,
    ) -> Reflector[Any]:
        into = table if counts is None else WatchedTable(table, self._changes, counts)
        reflector: Reflector[Any] = Reflector(
            self._client, path, decode, into, field_selector=fields, label_selector=labels
        )
        table.fed_by(reflector)
        return reflector
