"""Faults of real clusters, each in a namespace of its own.

They are those of sections 2 and 3 of the list of explanations: why wanted pods do not exist or do
not serve, and what manages the object that a fix changes.
"""

from __future__ import annotations

from typing import Any

from tests.e2e.apiservice import ensure_namespace
from tests.e2e.causestage import GPU, CauseStage, ago, fault
from tests.e2e.cluster import Object

TAINT = [{"key": "dedicated", "value": "training", "effect": "NoSchedule"}]


def status(state: Object, restarts: int = 0, *, phase: str = "Running", **more: Any) -> Object:
    """The status of a pod whose container is in a state."""
    row = {
        "name": "main",
        "image": "none",
        "imageID": "",
        "ready": False,
        "restartCount": restarts,
        "state": state,
        **more,
    }
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": ago(10800)}
    pod_status = {"phase": phase, "startTime": ago(10800), "containerStatuses": [row]}
    return pod_status | {"podIP": "127.0.0.1", "conditions": [ready]}


def waits(reason: str, message: str = "", restarts: int = 0, **more: Any) -> Object:
    """The status of a pod whose container waits."""
    return status({"waiting": {"reason": reason, "message": message}}, restarts, **more)


def ended(reason: str, code: int, **more: Any) -> Object:
    """How the container ended before."""
    row = {"reason": reason, "exitCode": code, "startedAt": ago(600), "finishedAt": ago(90)}
    return {"lastState": {"terminated": row | more}}


@fault(
    "1 pod is not created",
    "ResourceQuota gpus is used up (requests.nvidia.com/gpu: 1 of 1 used, 1 more each)",
    check="GMA431",
    cured=True,
)
def quota(stage: CauseStage, namespace: str) -> None:
    """Two pods are wanted, and the quota has one GPU."""
    spec = {"hard": {f"requests.{GPU}": "1"}}
    meta = {"name": "gpus", "namespace": namespace}
    stage.admin.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}
    )
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/gpus"
    stage.admin.wait(path, lambda obj: bool(obj.get("status", {}).get("hard")), "it is counted")
    stage.load.set(namespace, 60)
    stage.admin.create(stage.target(namespace, 2))
    stage.admin.create(stage.scaled(namespace, low=2))


@fault(
    "1 pod is not created",
    "Pod Security restricted:latest forbids them: allowPrivilegeEscalation != false",
    check="GMA432",
    cured=True,
)
def pod_security(stage: CauseStage, namespace: str) -> None:
    """The namespace enforces a level that the template does not meet."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    stage.admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    stage.admin.create(stage.target(namespace))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "crashes again and again (CrashLoopBackOff): 12 restarts in 3h",
    "exit code 1 (an error of the program): CUDA error: no device",
    check="GMA433",
)
def crash_loop(stage: CauseStage, namespace: str) -> None:
    """The server ends as soon as it starts."""
    before = ended("Error", 1, message="CUDA error: no device")
    row = waits("CrashLoopBackOff", "back-off 5m0s restarting failed container", 12, **before)
    stage.admin.create(stage.target(namespace, status=row))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "was killed because it reached its memory limit of 16Gi (OOMKilled): 7 restarts in 3h",
    "that of the GPU is not visible here",
    check="GMA434",
)
def out_of_memory(stage: CauseStage, namespace: str) -> None:
    """The server needs more memory than its limit."""
    row = waits("CrashLoopBackOff", "back-off", 7, **ended("OOMKilled", 137))
    made = stage.target(namespace, status=row)
    limits = made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits["memory"] = "16Gi"
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "image registry.example/llm:typo of 1 pod",
    "cannot be pulled (ImagePullBackOff)",
    "correct the image's name or tag",
    check="GMA435",
)
def image_pull(stage: CauseStage, namespace: str) -> None:
    """The image does not exist."""
    text = 'Back-off pulling image "registry.example/llm:typo": ErrImagePull: not found'
    row = waits("ImagePullBackOff", text, phase="Pending")
    stage.admin.create(stage.target(namespace, status=row, image="registry.example/llm:typo"))
    stage.admin.create(stage.scaled(namespace))


@fault("runs and is not ready for 3h", check="GMA437")
def never_ready(stage: CauseStage, namespace: str) -> None:
    """The readiness probe fails for hours."""
    row = status({"running": {"startedAt": ago(10800)}})
    stage.admin.create(stage.target(namespace, status=row))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "no toleration for the taint dedicated=training:NoSchedule of 1 GPU node (tainted)",
    check="GMA438",
    cured=True,
)
def taint(stage: CauseStage, namespace: str) -> None:
    """The nodes of the pool have a taint that the pods do not tolerate."""
    stage.node("tainted", 8, taints=TAINT)
    stage.admin.create(stage.target(namespace, pod={"nodeSelector": {"pool": "tainted"}}))
    stage.admin.create(stage.scaled(namespace))


@fault("node no-gpus offers 0 of its 8 nvidia.com/gpu", check="GMA012")
def no_gpus(stage: CauseStage, namespace: str) -> None:
    """The device plugin of the node is gone."""
    stage.node("no-gpus", 0)
    stage.admin.create(stage.target(namespace, pod={"nodeSelector": {"pool": "no-gpus"}}))
    stage.admin.create(stage.scaled(namespace))


@fault("node some-gpus offers 6 of its 8 nvidia.com/gpu: the plugin reports 2", check="GMA012")
def some_gpus(stage: CauseStage, namespace: str) -> None:
    """Two GPUs have failed, and a pod needs all eight."""
    stage.node("some-gpus", 6)
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "some-gpus"}})
    limits = {"limits": {GPU: "8"}}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "node half-upgraded offers its GPUs to no new pod",
    "the driver upgrade has failed (nvidia.com/gpu-driver-upgrade-state=upgrade-failed)",
    "of the node to upgrade-required",
    check="GMA012",
)
def half_upgraded(stage: CauseStage, namespace: str) -> None:
    """The GPU operator has failed to upgrade the driver, and leaves the node cordoned."""
    label = {"nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"}
    cordoned = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    stage.node("half-upgraded", 8, labels=label, taints=cordoned)
    stage.admin.create(stage.target(namespace, pod={"nodeSelector": {"pool": "half-upgraded"}}))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "the nodes with a free nvidia.com/gpu have at most 4 cpu free (node busy), and the pods ask",
    "cpu of these nodes is held: Deployment cpu-of-others/batch 60",
    check="GMA438",
)
def cpu_of_others(stage: CauseStage, namespace: str) -> None:
    """Pods without GPUs hold the CPU of a node whose GPUs are free."""
    stage.node("busy", 8)
    other = stage.target(namespace, pod={"nodeSelector": {"pool": "busy"}})
    other["metadata"]["name"] = "batch"
    spec = other["spec"]
    for part in (spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]):
        part["app"] = "batch"
    spec["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60"}}
    stage.admin.create(other)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/batch"
    stage.admin.wait(path, lambda obj: bool(obj["status"].get("readyReplicas")), "it runs")
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "busy"}})
    resources = made["spec"]["template"]["spec"]["containers"][0].setdefault("resources", {})
    resources["requests"] = {**resources.get("requests", {}), "cpu": "8"}
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "1 device that is reported unhealthy",
    "GPU-bad of nvidia.com/gpu",
    check="GMA440",
)
def unhealthy_device(stage: CauseStage, namespace: str) -> None:
    """The device of a pod has failed: the kubelet reports it with the gate ResourceHealthStatus."""
    health = [{"name": GPU, "resources": [{"resourceID": "GPU-bad", "health": "Unhealthy"}]}]
    row = status({"running": {"startedAt": ago(60)}}, allocatedResourcesStatus=health)
    row["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(60)}]
    row["containerStatuses"][0]["ready"] = True
    stage.admin.create(stage.target(namespace, status=row))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "the rollout of Deployment rollout/inference waits for itself",
    "(ProgressDeadlineExceeded)",
    "maxUnavailable is 0",
    check="GMA439",
    cured=True,
)
def rollout(stage: CauseStage, namespace: str) -> None:
    """The new pod needs the only GPU of its pool, which the old pod holds."""
    stage.node("one-gpu", 1, 1)
    pod = {"nodeSelector": {"pool": "one-gpu"}}
    stage.load.set(namespace, 60)
    made = stage.target(namespace, pod=pod, progressDeadlineSeconds=30)
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/inference"
    stage.admin.wait(path, lambda obj: bool(obj["status"].get("readyReplicas")), "it runs")
    change = {"metadata": {"annotations": {"version": "2"}}}
    stage.admin.patch(path, {"spec": {"template": change}})


@fault(
    "the selector of Deployment two-workloads/inference matches 1 pod",
    "of Deployment two-workloads/embed too",
    check="GMA441",
)
def two_workloads(stage: CauseStage, namespace: str) -> None:
    """Two Deployments have the same labels."""
    stage.load.set(namespace, 60)
    other = stage.target(namespace)
    other["metadata"]["name"] = "embed"
    stage.admin.create(stage.target(namespace))
    stage.admin.create(other)
    stage.admin.create(stage.scaled(namespace))


@fault("argocd-controller", "sets spec.replicas back", "ignoreDifferences", check="GMA442")
def git_resets(stage: CauseStage, namespace: str) -> None:
    """Another program applies spec.replicas again and again."""
    stage.load.pin(namespace, "inference", 95)
    place = f"/apis/apps/v1/namespaces/{namespace}/deployments?fieldManager=argocd-controller"
    stage.admin.request("POST", place, stage.target(namespace))
    stage.admin.create(stage.scaled(namespace, high=2))
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/inference"
    for _ in range(4):
        stage.admin.wait(path, lambda obj: obj["spec"]["replicas"] == 2, "the HPA has scaled")
        body = {"spec": {"replicas": 1}}
        kind = {"Content-Type": "application/merge-patch+json"}
        stage.admin.request("PATCH", f"{path}?fieldManager=argocd-controller", body, **kind)


@fault(
    "no Deployment inference in namespace wrong-namespace, and there is one in",
    "an HPA scales objects of its own namespace only",
    check="GMA421",
)
def wrong_namespace(stage: CauseStage, namespace: str) -> None:
    """The workload is elsewhere."""
    other = f"{namespace}-2"
    ensure_namespace(stage.admin, other)
    stage.admin.create(stage.target(other, 0))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "nothing serves external.metrics.k8s.io, which has External metrics, so queue_length has",
    "turn on externalMetrics.enabled",
    check="GMA444",
)
def external_off(stage: CauseStage, namespace: str) -> None:
    """Nobody has turned the external API on."""
    goal = {"type": "AverageValue", "averageValue": "10"}
    row = {"metric": {"name": "queue_length"}, "target": goal}
    _with_metric(stage, namespace, {"type": "External", "external": row})


@fault(
    "nothing serves metrics.k8s.io, which has cpu and memory, so cpu has no value",
    "install metrics-server",
    check="GMA444",
)
def no_metrics_server(stage: CauseStage, namespace: str) -> None:
    """The HPA asks for the CPU of a container, and nobody measures it."""
    goal = {"type": "Utilization", "averageUtilization": 60}
    row = {"name": "cpu", "container": "main", "target": goal}
    _with_metric(stage, namespace, {"type": "ContainerResource", "containerResource": row})


def _with_metric(stage: CauseStage, namespace: str, row: Object) -> None:
    made = stage.scaled(namespace)
    made["spec"]["metrics"] = [row]
    stage.admin.create(stage.target(namespace))
    stage.admin.create(made)


@fault("is held back", "by the scheduling gate kueue.x-k8s.io/admission", check="GMA438")
def a_queue(stage: CauseStage, namespace: str) -> None:
    """A queue has not admitted the pods."""
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    stage.admin.create(stage.target(namespace, pod={"schedulingGates": gates}))
    stage.admin.create(stage.scaled(namespace))


@fault("1 of 2 devices of gpu.example on tainted-device have the taint", check="GMA440")
def device_taint(stage: CauseStage, namespace: str) -> None:
    """The driver has tainted the device that a pod claims."""
    group = "resource.k8s.io/v1"
    taint = {"key": "gpu.example/xid", "value": "79", "effect": "NoSchedule"}
    devices = [{"name": "gpu-0", "taints": [taint]}, {"name": "gpu-1", "taints": [taint]}]
    devices[1].pop("taints")
    stage.node("tainted-device", 0, 0)
    spec = {
        "driver": "gpu.example",
        "nodeName": "tainted-device",
        "pool": {"name": "tainted-device", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    root = "/apis/resource.k8s.io/v1"
    select = [{"cel": {"expression": 'device.driver == "gpu.example"'}}]
    rows: list[tuple[str, Object]] = [
        ("resourceslices", {"kind": "ResourceSlice", "spec": spec}),
        ("deviceclasses", {"kind": "DeviceClass", "spec": {"selectors": select}}),
    ]
    for resource, row in rows:
        meta = {"metadata": {"name": "tainted-device"}, "apiVersion": group}
        stage.admin.request("POST", f"{root}/{resource}", row | meta)
    request = {"name": "gpu", "exactly": {"deviceClassName": "tainted-device", "count": 2}}
    claim = {
        "apiVersion": group,
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": namespace},
        "spec": {"devices": {"requests": [request]}},
    }
    stage.admin.request("POST", f"{root}/namespaces/{namespace}/resourceclaims", claim)
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    pod = {"resourceClaims": claims, "nodeSelector": {"pool": "tainted-device"}}
    made = stage.target(namespace, pod=pod)
    made["spec"]["template"]["spec"]["containers"][0].pop("resources")
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "no toleration for the taint dedicated=training:NoSchedule",
    "change it in git (Argo CD Application chat)",
)
def argo_target(stage: CauseStage, namespace: str) -> None:
    """Argo CD writes the Deployment again: a change of it would not last."""
    note = f"chat:apps/Deployment:{namespace}/inference"
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "tainted"}})
    made["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": note}
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "no toleration for the taint dedicated=training:NoSchedule",
    "Helm release chat",
)
def helm_target(stage: CauseStage, namespace: str) -> None:
    """The next upgrade of a Helm release writes the Deployment again."""
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "tainted"}})
    made["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": "chat",
        "meta.helm.sh/release-namespace": namespace,
    }
    made["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault("crashes again and again (CrashLoopBackOff)")
def old_version(stage: CauseStage, namespace: str) -> None:
    """The HPA names a version that is served no more: the controller finds the target all the
    same."""
    row = waits("CrashLoopBackOff", "back-off", 5, **ended("Error", 1))
    stage.admin.create(stage.target(namespace, status=row))
    made = stage.scaled(namespace)
    made["spec"]["scaleTargetRef"]["apiVersion"] = "apps/v1beta1"
    stage.admin.create(made)


@fault("Job has no scale subresource")
def no_scale(stage: CauseStage, namespace: str) -> None:
    """The HPA names an object that nothing can scale."""
    made = stage.target(namespace)
    template = made["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    spec = {"suspend": True, "template": template}
    meta = {"name": "inference", "namespace": namespace}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    stage.admin.create(job)
    hpa = stage.scaled(namespace)
    hpa["spec"]["scaleTargetRef"] |= {"apiVersion": "batch/v1", "kind": "Job"}
    stage.admin.create(hpa)
