"""Situations of pods that fit no node, do not start there, or wait for another program.

They are those of public reports, which each module of the causes names.
"""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from adapter.pipeline.cluster.objects import read
from adapter.pipeline.cluster.workloadobjects import SeenCronJob
from tests.adapter.answers.causes.scene import GPU, NS, Json, Scene, ago, owned

FULL: Final = f"0/1 nodes are available: 1 Insufficient {GPU}. no new claims to deallocate, preempt"
NOT: Final = "didn't"  # prose: ignore
SELECTOR: Final = f"0/1 nodes are available: 1 node(s) {NOT} match Pod's node affinity/selector."
UNBOUND: Final = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not"
CLAIMS: Final = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
GATE: Final = 'corresponding condition of pod readiness gate "lb.example/chat" does not exist.'
REJECTED: Final = "Pod was rejected: Allocate failed due to requested number of devices unavailable"
X509: Final = 'Internal error occurred: failed calling webhook "a.example": x509: has expired'
REFUSED: Final = 'Internal error occurred: failed calling webhook "a.example": connection refused'
MIG: Final = {"nvidia.com/mig-1g.10gb": "7"}
MAXIMUM: Final = 'pods "llm-x" is forbidden: maximum nvidia.com/gpu usage per Container is 1'
OTHER: Final = {"app": "other"}


def full(**more: Any) -> Scene:
    """One GPU, which another pod holds."""
    scene = Scene().node("n1", "1").pending("llm-a", FULL)
    more = {"owner": ("StatefulSet", "embed"), "labels": OTHER, **more}
    return scene.pod("embed-0", **more)


def ending(status: Json | None = None, **more: Any) -> Scene:
    """The pod that holds the GPU is being deleted."""
    scene = Scene().node("n1", "1", status=status or {}).pending("llm-a", FULL)
    meta = {"deletionTimestamp": ago(600), **more}
    return scene.pod("embed-0", owner=("StatefulSet", "embed"), labels=OTHER, meta=meta)


def creating(reason: str, message: str, seconds: float = 30.0, times: int = 9) -> Scene:
    """A pod that has a node, and does not start there."""
    scene = Scene().pod("llm-a", phase="Pending", ready=False)
    return scene.event("Pod", "llm-a", reason, message, seconds, times)


def initializing(seconds: float, **spec: Any) -> Scene:
    """An init container that runs."""
    row = {"name": "load", "state": {"running": {"startedAt": ago(seconds)}}}
    return Scene().pod(
        "llm-a",
        phase="Pending",
        ready=False,
        status={"initContainerStatuses": [row]},
        initContainers=[{"name": "load", **spec}],
    )


def not_ready(**condition: str) -> Json:
    """The condition of a pod or node that is not ready."""
    return {"type": "Ready", "status": "False", "lastTransitionTime": ago(1200), **condition}


def lost(seconds: float = 1200) -> Scene:
    """The node of a pod does not answer."""
    row = not_ready(status="Unknown", message="Kubelet stopped posting node status.")
    row["lastTransitionTime"] = ago(seconds)
    return Scene().node("n1", status={"conditions": [row]}).pod("llm-a", ready=False, since=60)


def ordered(revision: str) -> Scene:
    """A StatefulSet whose pod cannot pull its image."""
    scene = Scene("StatefulSet", replicas=1, status={"updateRevision": "llm-2"})
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    labels = {"app": "llm", "controller-revision-hash": revision}
    row = {"name": "main", "ready": False, "state": state}
    return scene.pod("llm-0", row, owner=("StatefulSet", "llm"), labels=labels, phase="Pending")


def inner() -> Scene:
    """An HPA of the ReplicaSet of a Deployment."""
    scene = Scene("ReplicaSet", chain=False)
    return scene.workload("ReplicaSet", "llm", replicas=1, **owned("Deployment", "chat"))


def evening(name: str) -> Scene:
    """A target at 0 replicas, and a CronJob that scales something."""
    command = ["kubectl", "scale", name, "--replicas=0"]
    pod = {"template": {"spec": {"containers": [{"name": "main", "command": command}]}}}
    spec = {"schedule": "0 20 * * *", "jobTemplate": {"spec": pod}}
    job = read({"metadata": {"name": "good-night", "namespace": NS}, "spec": spec}, SeenCronJob)
    return Scene(replicas=0).know(cronjobs=[job])


def rejected(**more: Any) -> Scene:
    """A pod that the kubelet rejected, and the next one."""
    status = {"reason": "UnexpectedAdmissionError", "message": REJECTED}
    scene = Scene().pod("llm-b", phase="Failed", ready=False, since=60, status=status)
    return scene.pod("llm-a", **more)


def evicted(number: int = 3) -> Scene:
    """Pods that the kubelet ended one after another, and the next one."""
    message = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi."
    status = {"reason": "Evicted", "message": message}
    scene = Scene()
    for place in range(number):
        scene.pod(f"llm-b{place}", phase="Failed", ready=False, since=90 + place, status=status)
    return scene.pod("llm-a", ready=False, since=20)


def refused(message: str) -> Scene:
    """A StatefulSet whose pod is refused."""
    return Scene("StatefulSet").event("StatefulSet", "llm", "FailedCreate", message, 30, 5)


CLAIM: Final = [{"name": "v", "persistentVolumeClaim": {"claimName": "models"}}]

OTHERS: Final[dict[str, tuple[CauseCode, Scene, tuple[str, ...]]]] = {
    "killed-by-the-liveness-probe": (
        CauseCode.NEVER_READY,
        Scene()
        .pod(
            "llm-a",
            {"name": "main", "ready": False, "restartCount": 9},
            since=7200,
        )
        .event("Pod", "llm-a", "Unhealthy", "Liveness probe failed: timeout", 20, 27),
        ("restarted 9 times", "startup probe that lasts as long as it loads", "--previous"),
    ),
    "killed-by-the-liveness-probe-and-unready-since": (
        CauseCode.NEVER_READY,
        Scene()
        .pod(
            "llm-a",
            {"name": "main", "ready": False, "restartCount": 6},
            since=7200,
        )
        .event("Pod", "llm-a", "Unhealthy", "Liveness probe failed: connection refused", 90, 18)
        .event("Pod", "llm-a", "Unhealthy", "Readiness probe failed: connection refused", 5, 141),
        (
            "because the kubelet kills the container: Liveness probe failed",
            "connection refused (18 times)",
            "startup probe that lasts as long as it loads",
            "--previous",
        ),
    ),
    "a-sidecar-that-is-not-ready": (
        CauseCode.NEVER_READY,
        Scene()
        .pod(
            "llm-a",
            {"name": "main", "ready": True},
            {"name": "istio-proxy", "ready": False},
            since=7200,
        )
        .event("Pod", "llm-a", "Unhealthy", "Readiness probe failed: HTTP 503", 20, 90),
        ("container istio-proxy", "readiness probe"),
    ),
    "pods-that-are-evicted": (
        CauseCode.CONTAINER_CONFIG,
        evicted(),
        (
            "has evicted",
            "ephemeral-storage",
            "request the ephemeral-storage that the server writes",
        ),
    ),
    "gpus-that-others-hold": (
        CauseCode.UNSCHEDULABLE,
        full(),
        (f"every {GPU} of the nodes is held: StatefulSet {NS}/embed 1", "add GPU nodes"),
    ),
    "gpus-of-a-higher-priority": (
        CauseCode.UNSCHEDULABLE,
        full(priority=1000),
        ("pods of a higher priority (1000 against 0) hold the GPUs", "priorityClassName"),
    ),
    "a-holder-with-a-finalizer": (
        CauseCode.UNSCHEDULABLE,
        ending(finalizers=["example.com/drain"]),
        (
            f"Pod {NS}/embed-0 holds its GPU on node n1 and has been ending for 10m",
            "nobody removes the finalizer example.com/drain",
            '"finalizers": null',
        ),
    ),
    "a-holder-that-hangs": (
        CauseCode.UNSCHEDULABLE,
        ending(),
        ("has been ending for 10m", "terminationGracePeriodSeconds"),
    ),
    "a-holder-on-a-node-that-is-gone": (
        CauseCode.UNSCHEDULABLE,
        ending(finalizers=["example.com/drain"], status={"conditions": [not_ready()]}),
        ("has been ending for 10m: the node is not Ready", "delete the Node object"),
    ),
    "a-full-node-pool": (
        CauseCode.UNSCHEDULABLE,
        full().event(
            "Pod",
            "llm-a",
            "NotTriggerScaleUp",
            f"pod {NOT} trigger scale-up: 1 max node group size reached",
            20,
        ),
        ("autoscaler says: 1 max node group size reached", "raise the maximum size"),
    ),
    "limits-of-a-nodepool": (
        CauseCode.UNSCHEDULABLE,
        full().event("Pod", "llm-a", "FailedScheduling", "would exceed limits for nodepool", 20),
        ("raise spec.limits of the NodePool",),
    ),
    "a-label-of-no-node": (
        CauseCode.UNSCHEDULABLE,
        Scene()
        .node("n1", labels={"gpu": "h100"})
        .pending("llm-a", SELECTOR, nodeSelector={"gpu": "a100"}),
        ("no node has the label gpu=a100 (nodes have h100)", "correct nodeSelector"),
    ),
    "another-profile": (
        CauseCode.UNSCHEDULABLE,
        Scene().node("n1", status={"capacity": MIG, "allocatable": MIG}).pending("llm-a", FULL),
        (f"has {GPU}; such nodes offer nvidia.com/mig-1g.10gb", "edit deployment llm"),
    ),
    "zones-out-of-balance": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending(
            "llm-a",
            f"0/2 nodes are available: 1 node(s) {NOT} match pod topology spread constraints.",
        ),
        ("match pod topology spread constraints; ", "ScheduleAnyway"),
    ),
    "a-claim-without-a-storage-class": (
        CauseCode.UNSCHEDULABLE,
        Scene()
        .pending("llm-a", UNBOUND, volumes=CLAIM)
        .event(
            "PersistentVolumeClaim",
            "models",
            "ProvisioningFailed",
            'storageclass.storage.k8s.io "fast" not found',
            20,
        ),
        ('claim models: storageclass.storage.k8s.io "fast" not found', "create the storage class"),
    ),
    "a-claim-without-any-word": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", UNBOUND, volumes=CLAIM),
        ("PersistentVolumeClaims (claim models)", "describe persistentvolumeclaim models"),
    ),
    "devices-of-no-driver": (
        CauseCode.UNSCHEDULABLE,
        Scene().know(slices=[]).pending("llm-a", CLAIMS, gpus="", resourceClaims=[{"name": "gpu"}]),
        ("no node has a device for the claim gpu", "there is no ResourceSlice"),
    ),
    "a-stalled-download": (
        CauseCode.NEVER_READY,
        initializing(10800),
        ("init container load of 1 pod (llm-a) runs for 3h", "logs llm-a -c load"),
    ),
    "no-such-runtime": (
        CauseCode.CONTAINER_CONFIG,
        creating("FailedCreatePodSandBox", 'no runtime for "nvidia" is configured'),
        ("1 pod (llm-a) does not start on node n1", "container toolkit"),
    ),
    "a-volume-of-one-node": (
        CauseCode.CONTAINER_CONFIG,
        creating("FailedAttachVolume", "Multi-Attach error for volume pvc-1"),
        ("(FailedAttachVolume, 9 times): Multi-Attach error", "ReadWriteMany"),
    ),
    "a-secret-that-is-missing": (
        CauseCode.CONTAINER_CONFIG,
        creating("FailedMount", 'secret "token" not found'),
        ("create what the message names",),
    ),
    "a-readiness-gate": (
        CauseCode.NEVER_READY,
        Scene().pod(
            "llm-a",
            ready=False,
            status={"conditions": [not_ready(reason="ReadinessGatesNotReady", message=GATE)]},
        ),
        ("no program has met the readiness gate lb.example/chat", "remove the readiness gate"),
    ),
    "a-node-that-is-gone": (
        CauseCode.NEVER_READY,
        lost(),
        ("is on node n1, which is not Ready for 20m: Kubelet stopped", "delete the Node object"),
    ),
    "a-pod-of-an-old-template": (
        CauseCode.IMAGE_PULL,
        ordered("llm-1"),
        ("has changed since, and a StatefulSet does not replace", "delete pod llm-0"),
    ),
    "a-pod-of-the-present-template": (
        CauseCode.IMAGE_PULL,
        ordered("llm-2"),
        ("correct the image's name or tag",),
    ),
    "a-replicaset-of-a-deployment": (
        CauseCode.REPLICAS_RESET,
        inner(),
        (f"Deployment chat owns ReplicaSet {NS}/llm", '"kind":"Deployment","name":"chat"'),
    ),
    "pods-that-the-kubelet-rejects": (
        CauseCode.CONTAINER_CONFIG,
        rejected(phase="Pending", ready=False),
        ("the kubelet of node n1 has rejected 1 pod (llm-b)", "kubectl cordon n1"),
    ),
    "a-webhook-with-an-old-certificate": (
        CauseCode.ADMISSION,
        refused(X509),
        ("renew the certificate of webhook a.example",),
    ),
    "a-webhook-that-is-gone": (
        CauseCode.ADMISSION,
        refused(REFUSED),
        ("see whether the server of webhook a.example runs",),
    ),
    "a-limit-range": (
        CauseCode.ADMISSION,
        refused(MAXIMUM),
        ("what the LimitRange of the namespace allows", "describe limitranges"),
    ),
}

QUIET: Final[dict[str, Scene]] = {
    "a-download-that-has-begun": initializing(300),
    "a-sidecar": initializing(10800, restartPolicy="Always"),
    "a-volume-that-moves": creating("FailedAttachVolume", "Multi-Attach error", 5, 0),
    "a-mount-that-failed-yesterday": creating("FailedMount", "not found", 86400),
    "a-job-of-another-target": evening("deployment/llm-embed"),
    "a-rejection-that-is-over": rejected(),
    "a-node-that-misses-one-report": lost(20),
}
