"""Why pods that an HPA wants do not exist or do not serve: causes, each with its fix.

``causes_of`` is pure. `explain` reads the facts around one HPA
(:mod:`adapter.tools.explain.causefacts`), `doctor` those of the whole cluster.
"""

from __future__ import annotations

from adapter.answers.causes import (
    containers,
    creation,
    gpunodes,
    metricsapis,
    placement,
    rollouts,
    scaling,
    starting,
)
from adapter.answers.causes.cause import Cause, CauseCode, group_causes
from adapter.answers.causes.facts import (
    ClusterFacts,
    KubeKey,
    ScalerFacts,
    owner_facts,
    pod_key,
    scaler_of,
)
from adapter.answers.causes.target import Target, target_of
from adapter.pipeline.cluster.managers import Manager
from adapter.pipeline.cluster.podobjects import SeenPod
from apiservice.labels.selector import Selector

__all__ = [
    "Cause",
    "CauseCode",
    "ClusterFacts",
    "KubeKey",
    "ScalerFacts",
    "cause_of_daemonset",
    "causes_of",
    "causes_of_pod",
    "group_causes",
    "scaler_of",
]


def causes_of_pod(facts: ClusterFacts, pod: SeenPod, manager: Manager | None = None) -> list[Cause]:
    """Return why a pod has no node, does not run, or does not serve.

    Args:
        facts: of the cluster, or of the part around the pod.
        pod: the pod.
        manager: what writes its workload again, if ``facts`` have not its object.
    """
    owner = facts.top(pod) or pod_key(pod)
    workload = facts.workload(owner)
    target = Target(facts, owner_facts(owner), workload, (), [pod], manager=manager)
    return _of_pods(target)


def cause_of_daemonset(
    facts: ClusterFacts, namespace: str, name: str, manager: Manager | None, missing: int
) -> Cause | None:
    """Return why a DaemonSet cannot create pods, by its events; None if they do not say it.

    Args:
        facts: of the cluster, or of the part around the DaemonSet.
        namespace: of the DaemonSet.
        name: of the DaemonSet.
        manager: what writes it again.
        missing: pods that do not exist.
    """
    owner = owner_facts(KubeKey(namespace, "DaemonSet", name))
    return creation.of_daemonset(Target(facts, owner, None, (), (), manager=manager), missing)


def _of_pods(target: Target) -> list[Cause]:
    """Return why pods that exist do not serve."""
    causes = (
        *placement.causes(target),
        *starting.causes(target),
        *containers.causes(target),
        *gpunodes.unhealthy_devices(target),
    )
    return [rollouts.of_statefulset(target, cause) for cause in causes]


def causes_of(
    facts: ClusterFacts,
    hpa: ScalerFacts,
    *,
    replicas: int | None = None,
    selector: Selector | None = None,
) -> list[Cause]:
    """Return the causes of one HPA, the nearest to its start first.

    Args:
        facts: of the cluster, or of the part around the HPA.
        hpa: the HPA.
        replicas: size of its target; None if it is not known.
        selector: of the target's pods, from its scale; None if it is not known.
    """
    target = target_of(facts, hpa, selector)
    causes = [
        *scaling.controller_stopped(facts, hpa, replicas),
        *scaling.wrong_namespace(facts, hpa),
        *scaling.size_owners(target),
        *scaling.zeroing_cronjobs(target),
        *metricsapis.causes(facts, hpa),
    ]
    pods = [*creation.causes(target), *_of_pods(target)]
    causes += [*rollouts.causes(target, pods), *pods]
    if selector is not None:
        causes += scaling.foreign_pods(target, selector)
    return causes
