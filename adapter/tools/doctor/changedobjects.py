"""The objects that fixes change, with what manages them, as far as they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.pipeline.cluster.changes import ChangedObject, set_values
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.managers import Manager, Way
from adapter.pipeline.cluster.podobjects import Container, SeenPod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.release import Release

_HASH = "pod-template-hash"


def workload_of(facts: Facts, pod: SeenPod) -> ChangedObject | None:
    """Return the workload whose template makes a pod: the Deployment of a ReplicaSet, or the pod's
    controller; None for a pod without one.
    """
    by, namespace = pod.pod.owner, pod.pod.ref.namespace
    if by is None:
        return None
    kind, name = by.kind, by.name
    suffix = f"-{pod.pod.labels.get(_HASH, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        kind, name = "Deployment", name.removesuffix(suffix)
    of = workload(facts, kind, namespace, name)
    return of._replace(group=by.api_version.rpartition("/")[0])


def workload(facts: Facts, kind: str, namespace: str, name: str) -> ChangedObject:
    """Return a workload as an object to change."""
    of = ChangedObject(kind, namespace, name)
    if kind == "DaemonSet":
        for daemonset in facts.daemonsets.value or () if facts.daemonsets.known else ():
            if (daemonset.namespace, daemonset.name) == (namespace, name):
                return _add_manager(facts, of, daemonset.manager, daemonset.pod.spec.containers)
        return _mark_unread(of, facts.daemonsets)
    for candidate in facts.workloads.value or () if facts.workloads.known else ():
        if (candidate.kind, candidate.metadata.namespace, candidate.metadata.name) == of[:3]:
            containers = candidate.spec.template.spec.containers
            return _add_manager(facts, of, candidate.metadata.manager, containers)
    return _mark_unread(of, facts.workloads) if kind in ("Deployment", "StatefulSet") else of


def own_values(release: Release, values: Mapping[str, str], command: str) -> Fix:
    """Return how values of the adapter's own chart are set.

    Args:
        command: what does the same to an installation that nothing writes again.
    """
    return make_lasting(
        changed_workload(release.workload), set_values(values)._replace(command=command)
    )


def changed_workload(seen_workload: SeenWorkload) -> ChangedObject:
    """Return a workload that was read as an object to change."""
    meta = seen_workload.metadata
    return ChangedObject(seen_workload.kind, meta.namespace, meta.name, meta.manager)


def _mark_unread(of: ChangedObject, fact: Fact[Any]) -> ChangedObject:
    """Nobody knows what manages an object that the caller may not read."""
    if fact.known:
        return of
    return of._replace(manager=Manager(of.kubectl("get", "-o yaml"), Way.UNKNOWN))


def _add_manager(
    facts: Facts, of: ChangedObject, manager: Manager | None, containers: Sequence[Container]
) -> ChangedObject:
    env: list[Mapping[str, Any]] = [
        # A variable from elsewhere has no value here, and cannot be written again.
        {"name": row.name, "value": row.value} if row.value else {"name": row.name}
        for row in (containers[0].env if containers else ())
    ]
    of = of._replace(manager=manager, env=env)
    if manager is None or manager.kind != "ClusterPolicy" or not facts.policies.known:
        return of
    for policy in facts.policies.value or ():
        if policy.name == manager.name or not manager.name:
            owner = {"spec": policy.spec}
            named_manager = manager._replace(name=policy.name)
            return of._replace(manager=named_manager, owner=owner, above=policy.manager)
    return of
