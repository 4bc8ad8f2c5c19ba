"""Control plane, kube-scheduler, kwok and Karpenter: nodes boot when pods need them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import modules, programs
from tests.e2e.cluster import Object, condition
from tests.e2e.controlplane import WORKLOADS, ControlPlane
from tests.e2e.process import Process, free_port, wait_until
from tests.e2e.scheduler import scheduler

GPU = "nvidia.com/gpu"
POOL = "gpu"
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
TOLERATION = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
SELECTOR = {"pool": POOL}
_CONTROLLERS = (
    *WORKLOADS,
    "daemonset-controller",
    "job-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "ttl-after-finished-controller",
)
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_STAGES = Path(__file__).with_name("stages.yaml")
NODEPOOLS = "/apis/karpenter.sh/v1/nodepools"
NODECLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


class Lab:
    """Use as a context manager. It stops everything that it started.

    Args:
        boot: boot time of a node in seconds.
        sync: seconds between two syncs of the HPA controller.
    """

    def __init__(self, folder: Path, boot: int, sync: int) -> None:
        self.folder = folder
        self.boot = boot
        self.plane = ControlPlane(
            folder,
            _CONTROLLERS,
            manager=(f"--horizontal-pod-autoscaler-sync-period={sync}s",),
            # kwok watches from resourceVersion 0, which kube-apiserver makes a WatchList, and
            # etcd before 3.4.31 cannot serve that: nodes would never become Ready.
            gates="WatchList=false",
        )
        self.admin = self.plane.admin
        self.scheduler = scheduler(self.plane, self.folder)
        self.kwok = self._kwok()
        self.karpenter = self._karpenter()
        self._stack = ExitStack()

    def __enter__(self) -> Lab:
        with ExitStack() as stack:
            stack.enter_context(self.plane)
            for crd in _definitions():
                self.admin.create(crd)
                name = crd["metadata"]["name"]
                self.admin.wait(
                    f"{_CRDS}/{name}",
                    lambda obj: condition(obj, "Established")[0] == "True",
                    f"{name} is established",
                )
            for manifest in self._manifests():
                self.admin.request("POST", _path(manifest), manifest)
            for process in (self.scheduler, self.kwok, self.karpenter):
                process.start()
                stack.callback(process.stop)
            self.admin.wait(
                f"{NODEPOOLS}/{POOL}",
                lambda obj: condition(obj, "Ready")[0] == "True",
                "Karpenter says that the pool is ready",
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def nodes(self) -> list[Object]:
        """Return the Ready nodes of the pool."""
        nodes = self.admin.get("/api/v1/nodes?labelSelector=pool%3Dgpu")["items"]
        return [node for node in nodes if condition(node, "Ready")[0] == "True"]

    def wait_nodes(self, count: int, seconds: float = 180.0) -> None:
        """Wait until the pool has exactly ``count`` Ready nodes."""
        wait_until(lambda: len(self.nodes()) == count, f"{count} nodes are Ready", seconds, 0.2)

    def ordered(self) -> int:
        """Return the number of nodes that Karpenter has ordered and not withdrawn, Ready or not."""
        return len(self.admin.get(NODECLAIMS)["items"])

    def tails(self) -> str:
        """Return the ends of all logs."""
        parts = (self.scheduler, self.kwok, self.karpenter)
        logs = "\n".join(f"--- {part.log.stem}\n{part.tail()}" for part in parts)
        return f"{self.plane.tails()}\n{logs}"

    def _kwok(self) -> Process:
        return Process(
            [
                programs.find(programs.KWOK),
                f"--kubeconfig={self.plane.kubeconfig}",
                f"--config={_STAGES}",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                f"--server-address=127.0.0.1:{free_port()}",
            ],
            self.folder / "kwok.log",
        )

    def _karpenter(self) -> Process:
        types = self.folder / "instance-types.json"
        types.write_text(json.dumps([_instance_type(1)]))
        environment = {
            "KUBECONFIG": str(self.plane.kubeconfig),
            "INSTANCE_TYPES_FILE_PATH": str(types),
            "FEATURE_GATES": "CapacityBuffer=true",
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(free_port()),
            "HEALTH_PROBE_PORT": str(free_port()),
            "KUBE_CLIENT_QPS": "500",
            "KUBE_CLIENT_BURST": "1000",
        }
        return Process(
            [programs.find(programs.KARPENTER)], self.folder / "karpenter.log", environment
        )

    def _manifests(self) -> list[Object]:
        node_class = {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": POOL},
            "spec": {"nodeRegistrationDelay": f"{self.boot}s"},
        }
        reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": POOL}
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": POOL},
            "spec": {
                "limits": {GPU: "64"},
                "disruption": {
                    "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "consolidateAfter": "5s",
                    "budgets": [{"nodes": "100%"}],
                },
                "template": {
                    "metadata": {"labels": SELECTOR},
                    "spec": {
                        "expireAfter": "Never",
                        "nodeClassRef": reference,
                        "taints": [TAINT],
                        "requirements": [
                            _requirement("karpenter.sh/capacity-type", "on-demand"),
                            _requirement("node.kubernetes.io/instance-type", "gpu-1x"),
                        ],
                    },
                },
            },
        }
        return [node_class, pool]


def holder(**more: Any) -> Object:
    """Return the spec of a pod that holds a GPU of the pool."""
    resources = {"requests": {"cpu": "3", "memory": "12Gi"}, "limits": {GPU: "1"}}
    return {
        "nodeSelector": SELECTOR,
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
        **more,
    }


def _requirement(key: str, value: str) -> Object:
    return {"key": key, "operator": "In", "values": [value]}


def _instance_type(gpus: int) -> Object:
    offering = {
        "Price": 0.5 * gpus,
        "Available": True,
        "Requirements": [
            _requirement("karpenter.sh/capacity-type", "on-demand"),
            _requirement("topology.kubernetes.io/zone", "lab-a"),
        ],
    }
    return {
        "name": f"gpu-{gpus}x",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {
            "cpu": str(4 * gpus),
            "memory": f"{16 * gpus}Gi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
            GPU: str(gpus),
        },
        "offerings": [offering],
    }


def _definitions() -> list[Object]:
    folder = modules.folder(modules.KARPENTER)
    files = sorted((folder / "kwok/charts/crds").glob("*.yaml"))
    files += sorted((folder / "kwok/apis/crds").glob("*.yaml"))
    return [row for file in files for row in yaml.safe_load_all(file.read_text()) if row]


def _path(manifest: Object) -> str:
    plural = {"KWOKNodeClass": "kwoknodeclasses", "NodePool": "nodepools"}[manifest["kind"]]
    return f"/apis/{manifest['apiVersion']}/{plural}"
