"""The objects of a large cluster as an API server stores them.

A pod of ``load/fleet.py`` has the few fields that the adapter reads. A real one also has
tolerations, volumes, conditions, container states and managed fields, about 5 kB of JSON, and every
list and watch event carries them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from load.fleet import NAMESPACE, SERVICE_SIZE, Slot, node_name, slot, status
from load.fleet import manifest as gpu_manifest
from load.page import GPUS_PER_NODE

TEAMS = 200
"""Namespaces of the pods without a GPU."""
REPLICAS = 20
"""Pods of one Deployment without a GPU."""
PODS_PER_NODE = 30


def pod_uid(index: int, serial: int) -> str:
    """The uid of the ``serial``-th pod in a place; a replacement has another."""
    return f"{serial:08x}-0000-4000-8000-{index:012d}"


def web_pod(index: int, serial: int) -> dict[str, Any]:
    """A pod without a GPU: one of a Deployment in a team's namespace."""
    deployment = index // REPLICAS
    team = deployment % TEAMS
    app = f"web-{deployment:05d}"
    name = f"{app}-6c9d7b5f4d-{index:06d}" + (f"-{serial}" if serial else "")
    number = index + (1 << 20)
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{team:03d}",
            "labels": {
                "app": app,
                "app.kubernetes.io/managed-by": "Helm",
                "pod-template-hash": "6c9d7b5f4d",
                "tier": ("web", "worker", "cache")[deployment % 3],
            },
        },
        "spec": {
            "nodeName": f"cpu-{index // PODS_PER_NODE:05d}",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/web:1",
                    "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                    "resources": {
                        "limits": {"memory": "512Mi"},
                        "requests": {"memory": "256Mi", "cpu": "100m"},
                    },
                }
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": _conditions(),
        },
    }
    return _complete_pod(made, index, serial)


def gpu_pod(at: Slot) -> dict[str, Any]:
    """The same of a GPU pod of ``load/fleet.py``."""
    made = gpu_manifest(at)
    made["status"] = status(at) | {"conditions": _conditions()}
    return _complete_pod(made, at.device.number, 0)


def pod(index: int, gpu_pods: int, serial: int = 0) -> dict[str, Any]:
    """Pod ``index`` of the cluster; the first ``gpu_pods`` hold a GPU each."""
    return gpu_pod(slot(index)) if index < gpu_pods else web_pod(index, serial)


def node(index: int) -> dict[str, Any]:
    """A GPU node, with the labels that the GPU operator gives it."""
    name = node_name(index)
    labels = {
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
        "nvidia.com/gpu.count": str(GPUS_PER_NODE),
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/mig.capable": "true",
    }
    resources = {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": str(GPUS_PER_NODE), "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": pod_uid(index, 1 << 30), "labels": labels},
        "spec": {"podCIDR": f"10.{index >> 8}.{index & 255}.0/24"},
        "status": {"allocatable": resources, "capacity": resources, "conditions": _conditions()},
    }


def workload(kind: str, index: int, services: int, pods: int) -> dict[str, Any]:
    """Deployment ``index``, or a ReplicaSet of it: of a service of GPU pods, or of the others.

    Args:
        kind: ``Deployment`` or ``ReplicaSet``; every second ReplicaSet is of an earlier template.
        services: Deployments with GPU pods, which are the first ones.
        pods: GPU pods of the cluster.
    """
    place, old = (index, False) if kind == "Deployment" else (index // 2, bool(index % 2))
    if place < services:
        template, replicas = gpu_pod(slot(place * SERVICE_SIZE)), SERVICE_SIZE
    else:
        first = -(-pods // REPLICAS) + place - services
        template, replicas = web_pod(first * REPLICAS, 0), REPLICAS
    meta, app = template["metadata"], template["metadata"]["labels"]["app"]
    name = app if kind == "Deployment" else f"{app}-{meta['labels']['pod-template-hash']}"
    metadata: dict[str, Any] = {
        "name": f"{name}-old" if old else name,
        "namespace": meta["namespace"],
        "uid": pod_uid(index, 1 << 29),
        "labels": {"app": app},
        "managedFields": meta["managedFields"],
    }
    if kind == "ReplicaSet":
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "controller": True}
        metadata["ownerReferences"] = [owner]
    count = 0 if old else replicas
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"creationTimestamp": None, "labels": meta["labels"]},
                "spec": template["spec"],
            },
        },
        "status": {
            "replicas": count,
            "readyReplicas": count,
            "availableReplicas": count,
            "updatedReplicas": count,
        },
    }


def hpa(index: int) -> dict[str, Any]:
    """The HPA of a service of GPU pods."""
    app = slot(index * SERVICE_SIZE).app
    target = {"type": "AverageValue", "averageValue": "70"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app, "namespace": NAMESPACE, "uid": pod_uid(index, 1 << 28)},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
            "minReplicas": 1,
            "maxReplicas": 2 * SERVICE_SIZE,
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "gpu_utilization"}, "target": target}}
            ],
        },
        "status": {"currentReplicas": SERVICE_SIZE, "desiredReplicas": SERVICE_SIZE},
    }


def _conditions() -> list[dict[str, Any]]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    moment = "2026-11-20T08:00:00Z"
    return [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
        for kind in kinds
    ]


def _complete_pod(made: dict[str, Any], index: int, serial: int) -> dict[str, Any]:
    """Add what the API server, the scheduler, the kubelet and admission add to every pod."""
    meta, spec, main = made["metadata"], made["spec"], made["spec"]["containers"][0]
    meta |= {
        "uid": pod_uid(index, serial),
        "creationTimestamp": "2026-11-20T07:59:00Z",
        "generateName": f"{meta['labels']['app']}-{meta['labels']['pod-template-hash']}-",
        "resourceVersion": "1",
        "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-20T07:58:00Z"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{meta['labels']['app']}-{meta['labels']['pod-template-hash']}",
                "uid": "11111111-2222-4333-8444-555555555555",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            _managed_fields("kube-controller-manager", ""),
            _managed_fields("kubelet", "status"),
        ],
    }
    main |= {
        "env": [{"name": f"SETTING_{n}", "value": "a value of this setting"} for n in range(8)],
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {
                "name": "kube-api-access-x7k2p",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}},
    }
    spec |= {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [
            {
                "name": "kube-api-access-x7k2p",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt"}},
                    ],
                },
            }
        ],
    }
    made["status"] |= {
        "hostIP": "192.0.2.1",
        "qosClass": "Guaranteed" if main["resources"].get("limits", {}).get("cpu") else "Burstable",
        "startTime": "2026-11-20T07:59:10Z",
        "containerStatuses": [
            {
                "name": "main",
                "image": main["image"],
                "imageID": "registry.example/it@sha256:" + "0" * 64,
                "containerID": "containerd://" + f"{index:064x}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-11-20T07:59:20Z"}},
                "lastState": {},
            }
        ],
    }
    return made


def _managed_fields(manager: str, subresource: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        f"f:{name}": {"f:a": {}, "f:b": {}, "f:c": {}}
        for name in ("metadata", "labels", "spec", "containers", "conditions", "podIPs", "volumes")
    }
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-20T08:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": fields, "f:spec": fields},
        "subresource": subresource,
    }


encoded = msgspec.json.encode
"""The JSON of an object, without blanks, as the API server writes it."""
