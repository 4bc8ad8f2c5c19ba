"""Situations of pods without a node: each reason of the scheduler has its own words and fix."""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from adapter.pipeline.cluster.objects import SeenNodeClaim, read
from tests.adapter.answers.causes.othersituations import CLAIM, NOT, full
from tests.adapter.answers.causes.scene import GPU, Scene, ago, owned

Row = tuple[CauseCode, Scene, tuple[str, ...]]


def lacks(reason: str, **more: Any) -> Scene:
    """A pod that no node takes, for a reason of the scheduler; the nodes are not known."""
    return Scene().pending("llm-a", f"0/3 nodes are available: 3 {reason}. no more", **more)


def asks(amounts: dict[str, str], **offers: str) -> Scene:
    """A pod that asks for more than the one node offers."""
    names = {key.replace("_", "-"): value for key, value in offers.items()}
    has = {GPU: "8", **names}
    scene = lacks(f"Insufficient {next(iter(amounts))}")
    scene.pods[0]["spec"]["containers"][0]["resources"]["requests"] = amounts
    return scene.node("n1", status={"capacity": has, "allocatable": has})


def affine(key: str, *values: str) -> dict[str, Any]:
    """A required node affinity."""
    row = {"key": key, "operator": "In", "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _elsewhere() -> Scene:
    none: dict[str, Any] = {"capacity": {}, "allocatable": {}}
    scene = lacks(f"Insufficient {GPU}", nodeSelector={"pool": "a"})
    return scene.node("n1", labels={"pool": "a"}, status=none).node("n2", labels={"pool": "b"})


def _no_scheduler(name: str = "") -> Scene:
    spec = {"schedulerName": name} if name else {}
    meta = {"creationTimestamp": ago(600)}
    return Scene().pod("llm-a", phase="Pending", on="", ready=False, meta=meta, **spec)


def _ending() -> Scene:
    scene = Scene("StatefulSet", replicas=1)
    meta = {"deletionTimestamp": ago(1800)}
    return scene.pod("llm-0", owner=("StatefulSet", "llm"), meta=meta)


def _ordered(*conditions: tuple[str, str, str, str]) -> Scene:
    """Karpenter has named a NodeClaim to the pod."""
    names = ("type", "status", "reason", "message")
    since = {"lastTransitionTime": ago(600)}
    rows = [dict(zip(names, row, strict=True)) | since for row in conditions]
    claim = {"metadata": {"name": "gpu-a1b2c"}, "status": {"conditions": rows}}
    text = "Pod should schedule on: nodeclaim/gpu-a1b2c"
    scene = full().event("Pod", "llm-a", "Nominated", text, 20)
    return scene.know(claims=[read(claim, SeenNodeClaim)])


def _says(text: str) -> Scene:
    text = f"pod {NOT} trigger scale-up: {text}"
    return full().event("Pod", "llm-a", "NotTriggerScaleUp", text, 20)


def _refused(answer: str) -> Scene:
    """The cloud refused a scale-up, and the node autoscaler has waited since."""
    text = f"Node scale up in zones zone-a associated with this pod failed: {answer}."
    scene = _says("1 in backoff after failed scale-up")
    return scene.event("Pod", "llm-a", "FailedScaleUp", text, 600)


def _tainted(key: str) -> Scene:
    scene = Scene().pending("llm-a", "0/1 nodes are available: 1 node(s) had untolerated taint(s)")
    return scene.node("n1", taints=[{"key": key, "effect": "NoSchedule"}])


PLACES: Final[dict[str, Row]] = {
    **{
        f"machines-that-the-cloud-has-not-{number}": (
            CauseCode.UNSCHEDULABLE,
            _refused(answer),
            (f"in zones zone-a associated with this pod failed: {answer}", fix),
        )
        for number, (answer, fix) in enumerate(
            (
                ("GCE out of resources", "the cloud has none of these machines now"),
                ("ZONE_RESOURCE_POOL_EXHAUSTED", "the cloud has none of these machines now"),
                ("InsufficientInstanceCapacity", "the cloud has none of these machines now"),
                ("ZonalAllocationFailed", "the cloud has none of these machines now"),
                ("SkuNotAvailable", "the cloud has none of these machines now"),
                ("GCE quota exceeded", "raise the quota of the cloud account"),
                ("VcpuLimitExceeded", "raise the quota of the cloud account"),
            )
        )
    },
    "a-request-of-memory-that-no-node-has": (
        CauseCode.UNSCHEDULABLE,
        asks({"memory": "512Gi"}, memory="250Gi"),
        ("they ask for 512Gi memory, and the largest of these nodes offers 250Gi", "requests.mem"),
    ),
    "more-gpus-than-a-node-has": (
        CauseCode.UNSCHEDULABLE,
        asks({GPU: "16"}),
        (f"they ask for 16 {GPU}, and the largest of these nodes offers 8",),
    ),
    "huge-pages-that-no-node-has": (
        CauseCode.UNSCHEDULABLE,
        asks({"hugepages-2Mi": "4Gi"}, hugepages_2Mi="0"),
        ("they ask for 4Gi hugepages-2Mi",),
    ),
    "huge-pages": (
        CauseCode.UNSCHEDULABLE,
        lacks("Insufficient hugepages-2Mi"),
        ("reserve huge pages of this size",),
    ),
    "local-storage": (
        CauseCode.UNSCHEDULABLE,
        lacks("Insufficient ephemeral-storage"),
        ("lower the requests of the pod template", "edit deployment llm"),
    ),
    "too-many-pods": (CauseCode.UNSCHEDULABLE, lacks("Too many pods"), ("raise maxPods",)),
    "a-port-of-the-host": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"node(s) {NOT} have free ports for the requested pod ports"),
        ("remove hostPort or hostNetwork",),
    ),
    "pods-that-keep-apart": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"node(s) {NOT} match pod anti-affinity rules"),
        ("make the podAntiAffinity a preferred one",),
    ),
    "pods-that-keep-together": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"node(s) {NOT} match pod affinity rules"),
        ("correct podAffinity",),
    ),
    "a-volume-of-another-zone": (
        CauseCode.UNSCHEDULABLE,
        lacks("node(s) had volume node affinity conflict"),
        ("zone or on the node that the volume names", "WaitForFirstConsumer", "a claim cannot be"),
    ),
    "too-many-volumes": (
        CauseCode.UNSCHEDULABLE,
        lacks("node(s) exceed max volume count"),
        ("no more can be attached",),
    ),
    "a-claim-that-does-not-exist": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", 'persistentvolumeclaim "models" not found', volumes=CLAIM),
        ("create the PersistentVolumeClaim", "get persistentvolumeclaims"),
    ),
    "no-volume-for-a-claim": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"node(s) {NOT} find available persistent volumes to bind", volumes=CLAIM),
        ("create a PersistentVolume that fits", "describe persistentvolumeclaim models"),
    ),
    "a-claim-for-one-pod": (
        CauseCode.UNSCHEDULABLE,
        lacks("node has pod using PersistentVolumeClaim with ReadWriteOncePod", volumes=CLAIM),
        ("one pod of the cluster may use this one",),
    ),
    "two-reasons-at-once": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"Too many pods, 2 node(s) {NOT} match pod anti-affinity rules, 1 node(s) had taint"),
        ("raise maxPods", "; or add nodes, move pods away"),
    ),
    "an-affinity-to-a-label-of-no-node": (
        CauseCode.UNSCHEDULABLE,
        lacks("no node", affinity=affine("zone", "a", "b")).node("n1", labels={"zone": "c"}),
        ("no node has the label zone=a or b (nodes have c)", "correct nodeAffinity"),
    ),
    "gpus-of-nodes-that-the-selector-excludes": (
        CauseCode.UNSCHEDULABLE,
        _elsewhere(),
        (f"no node that they select has {GPU}, and node n2 has",),
    ),
    "a-resource-of-no-node": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"Insufficient {GPU}").node("n1", status={"capacity": {}, "allocatable": {}}),
        (f"no node of the cluster offers {GPU}", "install the device plugin"),
    ),
    "a-scheduler-that-does-not-run": (
        CauseCode.UNSCHEDULABLE,
        _no_scheduler("volcano"),
        ("no scheduler has looked at it (schedulerName volcano)", "correct schedulerName"),
    ),
    "no-scheduler-at-all": (
        CauseCode.UNSCHEDULABLE,
        _no_scheduler(),
        ("(schedulerName default-scheduler)",),
    ),
    "a-claim-that-is-not-created": (
        CauseCode.UNSCHEDULABLE,
        lacks('resourceclaim "gpu" not found', gpus="", resourceClaims=[{"name": "gpu"}]),
        ("create the ResourceClaim, ResourceClaimTemplate or DeviceClass",),
    ),
    "a-job-that-holds-the-gpus": (
        CauseCode.UNSCHEDULABLE,
        full(owner=("Job", "train")),
        ("Job chat/train 1", "wait until Job chat/train ends, or suspend it", "get job train"),
    ),
    "machines-that-the-cloud-has-not": (
        CauseCode.UNSCHEDULABLE,
        _says("1 in backoff after failed scale-up"),
        ("see why the last scale-up failed",),
    ),
    "a-new-node-without-the-resource": (
        CauseCode.UNSCHEDULABLE,
        lacks("Insufficient k8s.amazonaws.com/vgpu", gpus="").event(
            "Pod",
            "llm-a",
            "NotTriggerScaleUp",
            "pod did not trigger scale-up: 1 Insufficient k8s.amazonaws.com/vgpu",
            20,
        ),
        ("let a node group of the autoscaler have", "node-template/resources/NAME"),
    ),
    "a-group-that-does-not-know-its-gpus": (
        CauseCode.UNSCHEDULABLE,
        lacks(f"Insufficient {GPU}").event(
            "Pod",
            "llm-a",
            "NotTriggerScaleUp",
            "pod did not trigger scale-up (it would not fit if a new node is added)",
            20,
        ),
        ("the tags of its template",),
    ),
    "a-new-node-whose-storage-driver-starts": (
        CauseCode.UNSCHEDULABLE,
        lacks("node(s) had untolerated taint {ebs.csi.aws.com/agent-not-ready: }"),
        ("removes it once the node is ready", "storage driver"),
    ),
    "no-machine-for-the-pod": (
        CauseCode.UNSCHEDULABLE,
        full().event(
            "Pod",
            "llm-a",
            "FailedScheduling",
            'incompatible with nodepool "gpu", no instance type satisfied resources',
            20,
        ),
        ("fit a NodePool",),
    ),
    "a-node-that-karpenter-cannot-get": (
        CauseCode.UNSCHEDULABLE,
        _ordered().event(
            "NodeClaim",
            "gpu-b2c3d",
            "InsufficientCapacityError",
            "NodeClaim gpu-b2c3d event: creating instance, insufficient capacity, with fleet error",
            60,
        ),
        ("InsufficientCapacityError: NodeClaim gpu-b2c3d", "the cloud has none of these machines"),
    ),
    "a-node-that-karpenter-cannot-get-and-whose-claim-is-not-read": (
        CauseCode.UNSCHEDULABLE,
        full()
        .event("Pod", "llm-a", "Nominated", "Pod should schedule on: nodeclaim/gpu-a1b2c", 90)
        .event(
            "Pod",
            "llm-a",
            "InsufficientCapacityError",
            "NodeClaim gpu-a1b2c nominated for this pod failed to launch: "
            "creating nodeclaim, insufficient capacity, all requested instance types were "
            "unavailable during launch",
            60,
        ),
        (
            "InsufficientCapacityError: NodeClaim gpu-a1b2c nominated for this pod failed",
            "the cloud has none of these machines",
        ),
    ),
    "a-node-class-that-is-not-ready": (
        CauseCode.UNSCHEDULABLE,
        _ordered().event(
            "NodeClaim", "gpu-a1b2c", "NodeClassNotReady", "NodeClaim gpu-a1b2c event: no AMI", 60
        ),
        ("NodeClassNotReady", "conditions of the NodeClass"),
    ),
    "a-machine-that-is-not-launched": (
        CauseCode.UNSCHEDULABLE,
        _ordered(("Launched", "False", "LaunchFailed", "not authorized to perform RunInstances")),
        ("NodeClaim gpu-a1b2c is not launched for 10m: not authorized", "permissions"),
    ),
    "a-machine-that-does-not-join": (
        CauseCode.UNSCHEDULABLE,
        _ordered(("Launched", "True", "", ""), ("Registered", "Unknown", "NodeNotFound", "")),
        ("NodeClaim gpu-a1b2c has not joined the cluster for 10m: NodeNotFound", "its kubelet"),
    ),
    "a-machine-without-its-gpus": (
        CauseCode.UNSCHEDULABLE,
        _ordered(
            ("Registered", "True", "", ""),
            ("Initialized", "Unknown", "ResourceNotRegistered", f"resource {GPU} not registered"),
        ),
        ("is not initialized for 10m: resource nvidia.com/gpu not registered", "device plugin"),
    ),
    "a-gang-that-is-not-complete": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", "pod group is not ready, 1 Pending, 2 minAvailable"),
        ("add GPUs for the whole group",),
    ),
    "a-share-of-a-gpu-that-none-has": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", "0/1 nodes are available: 1 CardInsufficientMemory"),
        ("nvidia.com/gpumem",),
    ),
    "a-node-whose-disk-is-full": (
        CauseCode.TAINT,
        _tainted("node.kubernetes.io/disk-pressure"),
        ("free disk space on the node", "kubectl describe node n1"),
    ),
    "a-node-that-is-being-removed": (
        CauseCode.TAINT,
        _tainted("karpenter.sh/disrupted"),
        ("Karpenter is removing it: wait for the next node", "kubectl describe node n1"),
    ),
    "a-node-whose-network-has-not-started": (
        CauseCode.TAINT,
        _tainted("node.cilium.io/agent-not-ready"),
        ("see its pod on the node",),
    ),
    "a-pod-that-does-not-end": (
        CauseCode.NEVER_READY,
        _ending(),
        ("Pod chat/llm-0 holds its GPU on node n1", "no pod of this name is created before"),
    ),
}
"""Name -> the code, the scene, and what text, fix and command contain together."""

PLACED: Final[dict[str, Scene]] = {
    "a-pod-that-was-created-a-moment-ago": Scene().pod(
        "llm-a", phase="Pending", on="", ready=False, meta={"creationTimestamp": ago(5)}
    ),
    "a-pod-of-a-deployment-that-ends": Scene().pod(
        "llm-a", meta={"deletionTimestamp": ago(1800), **owned("ReplicaSet", "llm-7f9")}
    ),
}
