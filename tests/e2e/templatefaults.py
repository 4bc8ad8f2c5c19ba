"""Faults of pod templates, rollouts and ScaledObjects, chosen from public trackers.

The control plane produces most of their messages itself: the scheduler, the admission plugins and
the workload controllers are real.
"""

from __future__ import annotations

import json
from typing import Any

from tests.e2e import crds
from tests.e2e.causefaults import ended, status, waits
from tests.e2e.causestage import GPU, STATUS, CauseStage, fault
from tests.e2e.cluster import DEPLOYMENTS, Object
from tests.e2e.otherfaults import pods, roomy

SCALEDOBJECTS = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects"


def _change(stage: CauseStage, namespace: str, spec: Object) -> None:
    stage.admin.patch(f"{DEPLOYMENTS.format(ns=namespace)}/inference", {"spec": spec})


def _none(stage: CauseStage, namespace: str, **pod: Any) -> None:
    """Create a workload whose pods find no node, and its HPA."""
    stage.admin.create(stage.target(namespace, pod={**roomy(stage), **pod}))
    stage.admin.create(stage.scaled(namespace))


@fault("is paused (spec.paused), so its present template is not rolled out", check="GMA439")
def paused_rollout(stage: CauseStage, namespace: str) -> None:
    """The image is corrected, and the Deployment is paused (kubernetes/kubernetes issue 42152)."""
    row = waits("ImagePullBackOff", "manifest unknown: not found", phase="Pending")
    stage.admin.create(
        stage.target(namespace, status=row, pod=roomy(stage), image="a.example/llm:x")
    )
    stage.admin.create(stage.scaled(namespace))
    pods(stage, namespace, 1)
    _change(stage, namespace, {"paused": True})
    note = {"annotations": {STATUS: "{}", "version": "2"}}
    _change(stage, namespace, {"template": {"metadata": note}})


def _stateful(stage: CauseStage, namespace: str, **spec: Any) -> None:
    """A StatefulSet whose pod crashes, and whose template is corrected."""
    before = ended("Error", 1, message="no such option --max-len")
    row = waits("CrashLoopBackOff", "back-off", 9, **before)
    made = stage.target(namespace, status=row, pod=roomy(stage))
    made |= {"kind": "StatefulSet", "apiVersion": "apps/v1"}
    made["spec"] |= {"serviceName": "inference", **spec}
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    stage.admin.request("POST", path, made)
    hpa = stage.scaled(namespace)
    hpa["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"
    stage.admin.create(hpa)
    pods(stage, namespace, 1)
    stage.admin.patch(
        f"{path}/inference", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    )


@fault("updateStrategy OnDelete replaces a pod only when it is deleted", "delete pod inference-0")
def on_delete(stage: CauseStage, namespace: str) -> None:
    """Nobody deletes the pods of a StatefulSet with OnDelete (kubernetes/website pull 4174)."""
    _stateful(stage, namespace, updateStrategy={"type": "OnDelete"})


@fault("pods below partition 1 of its updateStrategy keep the old one", '"partition":0')
def partition(stage: CauseStage, namespace: str) -> None:
    """A partition keeps the old template (kubernetes/kubernetes issue 70442)."""
    rule = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    _stateful(stage, namespace, updateStrategy=rule)


@fault("no PriorityClass with name urgent was found", "create this PriorityClass", check="GMA432")
def no_priority_class(stage: CauseStage, namespace: str) -> None:
    """The PriorityClass does not exist."""
    _none(stage, namespace, priorityClassName="urgent")


@fault('RuntimeClass "nvidia-legacy" not found', "correct runtimeClassName", check="GMA432")
def no_runtime_class(stage: CauseStage, namespace: str) -> None:
    """The RuntimeClass does not exist (NVIDIA/gpu-operator issue 549)."""
    _none(stage, namespace, runtimeClassName="nvidia-legacy")


@fault("no scheduler has looked at it (schedulerName volcano)", check="GMA438")
def no_scheduler(stage: CauseStage, namespace: str) -> None:
    """The scheduler that the pods name does not run."""
    _none(stage, namespace, schedulerName="volcano")


@fault("ask for 4Ti memory, and the largest of these nodes offers 512Gi", check="GMA438")
def too_much_memory(stage: CauseStage, namespace: str) -> None:
    """No node has so much memory (kubernetes/autoscaler issue 3268)."""
    limits = {"limits": {GPU: "1", "memory": "4Ti"}}
    container = {"name": "main", "image": "none", "resources": limits}
    _none(stage, namespace, containers=[container])


@fault("ask for 64 nvidia.com/gpu, and the largest of these nodes offers 32", check="GMA438")
def too_many_gpus(stage: CauseStage, namespace: str) -> None:
    """A pod asks for more GPUs than a node has."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "64"}}}
    _none(stage, namespace, containers=[container])


@fault("free ports for the requested pod ports", "remove hostPort", check="GMA438")
def host_port(stage: CauseStage, namespace: str) -> None:
    """Two pods want one port of a node."""
    limits = {"limits": {GPU: "1"}}
    port = {"containerPort": 8000, "hostPort": 8000}
    container = {"name": "main", "image": "none", "resources": limits, "ports": [port]}
    made = stage.target(namespace, 2, pod={**roomy(stage), "containers": [container]})
    stage.load.set(namespace, 60)
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace, low=2))


@fault("no node has the label zone=nowhere", "correct nodeAffinity", check="GMA438")
def no_zone(stage: CauseStage, namespace: str) -> None:
    """A required affinity names a label that no node has."""
    row = {"key": "zone", "operator": "In", "values": ["nowhere"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
    rule = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    _none(stage, namespace, affinity=rule)


@fault("has ended: 0 restarts", "belongs into a Job", check="GMA433")
def completed(stage: CauseStage, namespace: str) -> None:
    """The server goes into the background, so its container ends."""
    state = {
        "terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:00Z"}
    }
    row = status(state)
    stage.admin.create(stage.target(namespace, status=row, pod=roomy(stage)))
    stage.admin.create(stage.scaled(namespace))


@fault("unresolvable CDI devices", "nvidia-ctk cdi generate", check="GMA436")
def no_cdi(stage: CauseStage, namespace: str) -> None:
    """The node's CDI specification lacks the device (NVIDIA/nvidia-container-toolkit 1239)."""
    text = "failed to inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=0"
    row = waits("CrashLoopBackOff", "back-off", 4, **ended("StartError", 128, message=text))
    stage.admin.create(stage.target(namespace, status=row, pod=roomy(stage)))
    stage.admin.create(stage.scaled(namespace))


def _scaled_object(stage: CauseStage, namespace: str, target: str = "inference") -> None:
    crds.install(stage.admin, crds.KEDA)
    trigger = {
        "type": "external",
        "metadata": {"scalerAddress": "adapter.gpu-metrics:6000", "metric": "gpu_utilization"},
    }
    made = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": [trigger]},
    }
    stage.admin.request("POST", SCALEDOBJECTS.format(ns=namespace), made)


@fault("KEDA's operator has not looked at it", "see whether keda-operator runs")
def no_operator(stage: CauseStage, namespace: str) -> None:
    """The definitions of KEDA are installed, and its operator does not run (keda issue 1856)."""
    stage.admin.create(stage.target(namespace, pod=roomy(stage)))
    _scaled_object(stage, namespace)


@fault("there is no Deployment absent in the namespace", "create the workload")
def no_scaled_target(stage: CauseStage, namespace: str) -> None:
    """The target of a ScaledObject does not exist."""
    _scaled_object(stage, namespace, "absent")
    row = {
        "type": "Ready",
        "status": "False",
        "reason": "ScaledObjectCheckFailed",
        "message": "the target was not found",
    }
    body = json.loads(json.dumps({"status": {"conditions": [row]}}))
    stage.admin.patch(f"{SCALEDOBJECTS.format(ns=namespace)}/inference/status", body)
