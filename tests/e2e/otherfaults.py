"""Further faults of real clusters, chosen from public trackers after the first ones were done.

Each docstring names where the fault was reported.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from typing import Any

from tests.e2e.apiservice import ensure_namespace
from tests.e2e.causefaults import status, waits
from tests.e2e.causestage import GPU, STATUS, CauseStage, ago, fault
from tests.e2e.cluster import DEPLOYMENTS, PODS, Object, RefusedError
from tests.e2e.process import wait_until


def starting(**more: Any) -> Object:
    """The status of a pod that has a node, and whose containers do not exist."""
    row = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    row["state"] = {"waiting": {"reason": "ContainerCreating"}}
    false = {"status": "False", "lastTransitionTime": ago(1800)}
    conditions = [{"type": name, **false} for name in ("Ready", "ContainersReady")]
    pod_status = {"phase": "Pending", "startTime": ago(1800), "containerStatuses": [row]}
    return pod_status | {"conditions": conditions} | more


def event(
    stage: CauseStage, kind: str, about: Object, reason: str, message: str, type_: str
) -> None:
    """Write an event, as a program that does not run here would."""
    meta = about["metadata"]
    row = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
        "involvedObject": {
            "kind": kind,
            "apiVersion": "v1",
            **{key: meta[key] for key in ("name", "namespace", "uid")},
        },
        "reason": reason,
        "message": message,
        "type": type_,
        "count": 12,
        "firstTimestamp": ago(1500),
        "lastTimestamp": ago(20),
    }
    stage.admin.request("POST", f"/api/v1/namespaces/{meta['namespace']}/events", row)


def roomy(stage: CauseStage) -> Object:
    """Return a selector of a node with room: the GPUs of the exporters' nodes are few."""
    with contextlib.suppress(RefusedError):
        stage.node("roomy", 32, 32)
    return {"nodeSelector": {"pool": "roomy"}}


def pods(stage: CauseStage, namespace: str, wanted: int) -> list[Object]:
    """Return the pods of a namespace once there are so many."""
    wait_until(lambda: len(stage.pods_of(namespace)) >= wanted, f"{namespace} has pods", 60)
    return stage.pods_of(namespace)


def note(stage: CauseStage, pod: Object, row: Object) -> None:
    """Give one pod a status of its own."""
    meta = pod["metadata"]
    path = f"{PODS.format(ns=meta['namespace'])}/{meta['name']}"
    stage.admin.patch(path, {"metadata": {"annotations": {STATUS: json.dumps(row)}}})


def serving() -> Object:
    """The status of a pod that serves."""
    row = status({"running": {"startedAt": ago(3600)}})
    row["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(3000)}]
    row["containerStatuses"][0]["ready"] = True
    return row


@fault(
    "init container download of 1 pod", "the server does not start before it ends", check="GMA437"
)
def init_download(stage: CauseStage, namespace: str) -> None:
    """The download of a model stalls in an init container (kserve/kserve issue 5611)."""
    row = starting()
    row["containerStatuses"][0]["state"]["waiting"]["reason"] = "PodInitializing"
    init = {"name": "download", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    row["initContainerStatuses"] = [init | {"state": {"running": {"startedAt": ago(10800)}}}]
    row["conditions"].append(
        {"type": "Initialized", "status": "False", "lastTransitionTime": ago(10800)}
    )
    row["startTime"] = ago(10800)
    init_spec = roomy(stage) | {"initContainers": [{"name": "download", "image": "none"}]}
    stage.admin.create(stage.target(namespace, status=row, pod=init_spec))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "does not start on node",
    "let the GPU operator, or the container toolkit, configure this runtime",
    check="GMA436",
)
def no_runtime(stage: CauseStage, namespace: str) -> None:
    """The node's container runtime has no handler of that name (NVIDIA/gpu-operator issue 549)."""
    runtime: Object = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    runtime["metadata"] = {"name": "nvidia"}
    stage.admin.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime)
    pod = roomy(stage) | {"runtimeClassName": "nvidia"}
    stage.admin.create(stage.target(namespace, status=starting(), pod=pod))
    stage.admin.create(stage.scaled(namespace))
    text = (
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox "
        'runtime: no runtime for "nvidia" is configured'
    )
    event(stage, "Pod", pods(stage, namespace, 1)[0], "FailedCreatePodSandBox", text, "Warning")


def claim(stage: CauseStage, namespace: str, **spec: Any) -> Object:
    """Create a claim of a volume."""
    made = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            **spec,
        },
    }
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    created: Object = stage.admin.request("POST", path, made)
    return created


VOLUME = {"volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}]}


@fault("(FailedAttachVolume, 12 times): Multi-Attach error", "ReadWriteMany", check="GMA436")
def multi_attach(stage: CauseStage, namespace: str) -> None:
    """A second replica cannot have a volume of one node (helm/charts issue 5595)."""
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/none"},
            "storageClassName": "none",
        },
    }
    made = claim(stage, namespace, storageClassName="none", volumeName=namespace)
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "models"}
    volume["spec"]["claimRef"] = reference | {"uid": made["metadata"]["uid"]}
    stage.admin.request("POST", "/api/v1/persistentvolumes", volume)
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/models"
    stage.admin.patch(
        path, {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    )
    bound = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
    stage.admin.patch(f"{path}/status", {"status": bound})
    stage.load.set(namespace, 60)
    stage.admin.create(stage.target(namespace, 2, status=starting(), pod=roomy(stage) | VOLUME))
    stage.admin.create(stage.scaled(namespace, low=2))
    first, second = pods(stage, namespace, 2)[:2]
    note(stage, first, serving())
    text = (
        f'Multi-Attach error for volume "{namespace}" Volume is already used by pod(s) '
        f"{first['metadata']['name']}"
    )
    event(stage, "Pod", second, "FailedAttachVolume", text, "Warning")


@fault(
    'storageclass.storage.k8s.io "fast-ssd" not found', "create the storage class", check="GMA438"
)
def unbound_claim(stage: CauseStage, namespace: str) -> None:
    """The storage class of the volume does not exist (kubernetes/kubernetes issue 77993)."""
    made = claim(stage, namespace, storageClassName="fast-ssd")
    text = 'storageclass.storage.k8s.io "fast-ssd" not found'
    event(stage, "PersistentVolumeClaim", made, "ProvisioningFailed", text, "Warning")
    stage.admin.create(stage.target(namespace, pod=VOLUME))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "no node has the label nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB",
    "correct nodeSelector",
    check="GMA438",
)
def no_label(stage: CauseStage, namespace: str) -> None:
    """The node selector asks for a label that no node has (kubernetes/autoscaler issue 5692)."""
    selector = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}
    stage.admin.create(stage.target(namespace, pod=selector))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "held: Deployment largest-pool/other 1; the node autoscaler says: 1 max node group",
    "raise the maximum size of the node group",
    check="GMA438",
)
def largest_pool(stage: CauseStage, namespace: str) -> None:
    """The node autoscaler has reached its maximum (kubernetes/autoscaler issue 5692)."""
    stage.node("largest", 1, 1)
    other = stage.target(namespace, pod={"nodeSelector": {"pool": "largest"}})
    other["metadata"]["name"] = "other"
    for part in (
        other["spec"]["selector"]["matchLabels"],
        other["spec"]["template"]["metadata"]["labels"],
    ):
        part["app"] = "other"
    stage.admin.create(other)
    path = f"{DEPLOYMENTS.format(ns=namespace)}/other"
    stage.admin.wait(path, lambda obj: bool(obj["status"].get("readyReplicas")), "it runs")
    stage.admin.create(stage.target(namespace, pod={"nodeSelector": {"pool": "largest"}}))
    stage.admin.create(stage.scaled(namespace))
    rows = [row for row in pods(stage, namespace, 2) if row["metadata"]["labels"]["app"] != "other"]
    text = "pod didn't trigger scale-up: 1 max node group size reached"  # prose: ignore
    event(stage, "Pod", rows[0], "NotTriggerScaleUp", text, "Normal")


@fault("gpu_utilisation", '"value":"gpu_utilization"', check="GMA401")
def wrong_metric(stage: CauseStage, namespace: str) -> None:
    """The metric's name is spelled otherwise."""
    stage.load.set(namespace, 60)
    made = stage.scaled(namespace)
    made["spec"]["metrics"][0]["pods"]["metric"]["name"] = "gpu_utilisation"
    stage.admin.create(stage.target(namespace))
    stage.admin.create(made)


@fault(
    "has nvidia.com/mig-1g.5gb; such nodes offer nvidia.com/mig-1g.10gb",
    "ask for a resource that the nodes offer",
    check="GMA438",
)
def other_mig(stage: CauseStage, namespace: str) -> None:
    """The nodes offer other MIG profiles than the pods ask for (NVIDIA/gpu-operator issue 693)."""
    stage.node("other-mig", 0, 0)
    amounts = {"nvidia.com/mig-1g.10gb": "7"}
    rows = {"status": {"capacity": amounts, "allocatable": amounts}}
    stage.admin.patch("/api/v1/nodes/other-mig/status", rows)
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/mig.strategy": "mixed"}
    stage.admin.patch("/api/v1/nodes/other-mig", {"metadata": {"labels": labels}})
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "other-mig"}})
    limits = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))


@fault("match pod topology spread constraints", "ScheduleAnyway", check="GMA438")
def spread(stage: CauseStage, namespace: str) -> None:
    """Zones must be even, and one zone has no GPU left."""
    for name, offers in (("spread-a", 8), ("spread-b", 1)):
        stage.node(name, offers, offers)
        labels = {"pool": "spread", "topology.kubernetes.io/zone": name}
        stage.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})
    rule = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "inference"}},
    }
    pod = {"nodeSelector": {"pool": "spread"}, "topologySpreadConstraints": [rule]}
    stage.admin.create(stage.target(namespace, 4, pod=pod))
    stage.admin.create(stage.scaled(namespace, low=4))


@fault(
    "no program has met the readiness gate target-health.elbv2.k8s.aws/k8s-chat-inference",
    check="GMA437",
)
def readiness_gate(stage: CauseStage, namespace: str) -> None:
    """A load balancer never reports its target as healthy
    (kubernetes-sigs/aws-load-balancer-controller issue 1205)."""
    gate = "target-health.elbv2.k8s.aws/k8s-chat-inference"
    row = serving()
    row["conditions"] = [
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": ago(3000)},
        {
            "type": "Ready",
            "status": "False",
            "reason": "ReadinessGatesNotReady",
            "message": f'corresponding condition of pod readiness gate "{gate}" does not exist.',
            "lastTransitionTime": ago(3000),
        },
    ]
    pod = roomy(stage) | {"readinessGates": [{"conditionType": gate}]}
    stage.admin.create(stage.target(namespace, status=row, pod=pod))
    stage.admin.create(stage.scaled(namespace))


@fault("the kubelet of node", "(UnexpectedAdmissionError)", "cordon the node", check="GMA436")
def rejected(stage: CauseStage, namespace: str) -> None:
    """The kubelet rejects each pod (NVIDIA/k8s-device-plugin issue 231)."""
    waiting = {"phase": "Pending", "startTime": ago(1)}
    stage.admin.create(stage.target(namespace, status=waiting, pod=roomy(stage)))
    stage.admin.create(stage.scaled(namespace))
    text = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
    )
    failed = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": text}

    def open_pods() -> list[Object]:
        return [
            row
            for row in stage.pods_of(namespace)
            if row["status"].get("phase") == "Pending" and row["spec"].get("nodeName")
        ]

    for _ in range(6):
        wait_until(lambda: bool(open_pods()), "the next pod", 60)
        pod = open_pods()[0]
        note(stage, pod, failed | {"startTime": ago(1)})
        event(stage, "Pod", pod, "UnexpectedAdmissionError", text.partition(": ")[2], "Warning")
        time.sleep(1)


@fault("nobody removes the finalizer example.com/drain", check="GMA438")
def terminating(stage: CauseStage, namespace: str) -> None:
    """A finalizer keeps a pod, and the pod keeps its GPU (k3s-io/k3s issue 1264)."""
    stage.node("terminating", 1, 1)
    made = stage.target(namespace, pod={"nodeSelector": {"pool": "terminating"}})
    made["spec"]["template"]["metadata"]["finalizers"] = ["example.com/drain"]
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))
    path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"
    stage.admin.wait(path, lambda obj: bool(obj["status"].get("readyReplicas")), "it runs")
    name = stage.pods_of(namespace)[0]["metadata"]["name"]
    stage.admin.delete(f"{PODS.format(ns=namespace)}/{name}")


@fault("is on node unreachable, which is not Ready", "delete the Node object", check="GMA437")
def unreachable(stage: CauseStage, namespace: str) -> None:
    """The node of the pods does not answer (kubernetes/kubernetes issue 102026)."""
    stage.node("unreachable", 8)
    row = serving()
    row["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": ago(1200)}]
    made = stage.target(namespace, status=row, pod={"nodeSelector": {"pool": "unreachable"}})
    stage.admin.create(made)
    stage.admin.create(stage.scaled(namespace))
    wait_until(
        lambda: any(row["spec"].get("nodeName") for row in stage.pods_of(namespace)), "bound", 60
    )
    taints = [
        {"key": "node.kubernetes.io/unreachable", "effect": effect}
        for effect in ("NoSchedule", "NoExecute")
    ]
    stage.furnish("unreachable", 8, taints=taints)
    gone = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": ago(1200),
    }
    stage.admin.patch("/api/v1/nodes/unreachable/status", {"status": {"conditions": [gone]}})


@fault(
    "a StatefulSet does not replace a pod that is not ready",
    "delete the pod: it is created again",
    check="GMA435",
)
def ordered(stage: CauseStage, namespace: str) -> None:
    """A StatefulSet does not replace its broken pod (kubernetes/kubernetes issue 67250)."""
    row = waits("ImagePullBackOff", "Back-off pulling image: not found", phase="Pending")
    image = "registry.example/llm:typo"
    made = stage.target(namespace, 3, status=row, image=image, pod=roomy(stage))
    made |= {"kind": "StatefulSet"}
    made["spec"]["serviceName"] = "inference"
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    stage.admin.request("POST", path, made)
    hpa = stage.scaled(namespace, low=3)
    hpa["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"
    stage.admin.create(hpa)
    pods(stage, namespace, 1)
    containers = made["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = "none"
    template = {"metadata": {"annotations": {STATUS: None}}, "spec": {"containers": containers}}
    stage.admin.patch(f"{path}/inference", {"spec": {"template": template}})


@fault(
    "Deployment inference owns ReplicaSet", "let the HPA scale Deployment inference", check="GMA442"
)
def inner_target(stage: CauseStage, namespace: str) -> None:
    """The HPA scales the ReplicaSet of a Deployment (openshift/origin-web-console issue 675)."""
    stage.load.pin(namespace, "inference", 95)
    stage.admin.create(stage.target(namespace))
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    wait_until(lambda: bool(stage.admin.get(path)["items"]), "the ReplicaSet", 60)
    made = stage.scaled(namespace)
    name = stage.admin.get(path)["items"][0]["metadata"]["name"]
    made["spec"]["scaleTargetRef"] |= {"kind": "ReplicaSet", "name": name}
    stage.admin.create(made)


@fault(
    "x509: certificate signed by unknown authority",
    "renew the certificate of webhook inject.mesh.example",
    check="GMA432",
)
def webhook(stage: CauseStage, namespace: str) -> None:
    """The API server does not trust a webhook's certificate (istio/istio issue 25181)."""
    stranger = base64.b64encode(stage.plane.front_proxy.cert.read_bytes()).decode()
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    hook = {
        "name": "inject.mesh.example",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"{stage.plane.url}/inject", "caBundle": stranger},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "mesh-injector"},
        "webhooks": [hook],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    stage.admin.request("POST", path, made)
    time.sleep(3)
    stage.admin.create(stage.target(namespace))
    stage.admin.create(stage.scaled(namespace))


@fault(
    "maximum nvidia.com/gpu usage per Container is 1, but limit is 2",
    "what the LimitRange of the namespace allows",
    check="GMA432",
)
def limit_range(stage: CauseStage, namespace: str) -> None:
    """A LimitRange allows fewer GPUs for each container."""
    row = {"type": "Container", "max": {GPU: "1"}}
    made = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "gpus"}}
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    stage.admin.request("POST", path, made | {"spec": {"limits": [row]}})
    time.sleep(2)
    target = stage.target(namespace)
    target["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: "2"}}
    stage.admin.create(target)
    stage.admin.create(stage.scaled(namespace))


@fault("CronJob at-night/good-night scales it (0 20 * * *)")
def at_night(stage: CauseStage, namespace: str) -> None:
    """A CronJob scales to 0 in the evening, and not back (kubernetes/kubernetes issue 95695)."""
    stage.admin.create(stage.target(namespace))
    path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"
    kind = {"Content-Type": "application/merge-patch+json"}
    body = {"spec": {"replicas": 0}}
    stage.admin.request("PATCH", f"{path}/scale?fieldManager=kubectl", body, **kind)
    job = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "kubectl",
                "image": "kubectl",
                "command": ["kubectl", "scale", "deployment/inference", "--replicas=0"],
            }
        ],
    }
    spec = {"schedule": "0 20 * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}}
    meta = {"name": "good-night", "namespace": namespace}
    stage.admin.create(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}
    )
    stage.admin.create(stage.scaled(namespace))


@fault("no node has a device for the claim gpu", "install the DRA driver", check="GMA438")
def no_driver(stage: CauseStage, namespace: str) -> None:
    """No driver offers devices of the claimed class (kubernetes-sigs/dra-driver-nvidia-gpu)."""
    group = "resource.k8s.io/v1"
    select = [{"cel": {"expression": 'device.driver == "absent.example"'}}]
    meta = {"name": "absent.example"}
    made = {
        "apiVersion": group,
        "kind": "DeviceClass",
        "metadata": meta,
        "spec": {"selectors": select},
    }
    stage.admin.request("POST", f"/apis/{group}/deviceclasses", made)
    request = {"name": "gpu", "exactly": {"deviceClassName": "absent.example", "count": 1}}
    row = {
        "apiVersion": group,
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": namespace},
        "spec": {"devices": {"requests": [request]}},
    }
    stage.admin.request("POST", f"/apis/{group}/namespaces/{namespace}/resourceclaims", row)
    pod = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    target = stage.target(namespace, pod=pod)
    target["spec"]["template"]["spec"]["containers"][0].pop("resources")
    stage.admin.create(target)
    stage.admin.create(stage.scaled(namespace))


@fault(
    "pods of a higher priority (100000 against 0) hold the GPUs",
    "priorityClassName",
    check="GMA438",
)
def preempted(stage: CauseStage, namespace: str) -> None:
    """Pods of a higher priority take the GPUs."""
    stage.node("preempted", 1, 1)
    meta = {"name": "training"}
    row = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta}
    stage.admin.create(row | {"value": 100000})
    pod = {"nodeSelector": {"pool": "preempted"}}
    stage.admin.create(stage.target(namespace, pod=pod))
    stage.admin.create(stage.scaled(namespace))
    path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"
    stage.admin.wait(path, lambda obj: bool(obj["status"].get("readyReplicas")), "it runs")
    other = f"{namespace}-training"
    ensure_namespace(stage.admin, other)
    made = stage.target(other, pod=pod | {"priorityClassName": "training"})
    made["metadata"]["name"] = "training"
    stage.admin.create(made)
