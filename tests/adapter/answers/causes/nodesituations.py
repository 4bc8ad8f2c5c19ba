"""Situations of GPU nodes: what an operator does with them, and who holds their CPU and memory."""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from tests.adapter.answers.causes.scene import GPU, Scene, waiting

CORDONED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
UPGRADE: Final = "nvidia.com/gpu-driver-upgrade-state"
MIG: Final = "nvidia.com/mig.config.state"
DCM: Final = "dcm.amd.com/gpu-config-profile-state"
FULL: Final = f"0/1 nodes are available: 1 Insufficient {GPU}."
AMD: Final = {"key": "amd-dcm", "value": "up", "effect": "NoExecute"}


def worked_on(key: str, state: str, allocatable: str = "8", *taints: dict[str, str]) -> Scene:
    """A pod waits for the only GPU node, whose label says what an operator does with it."""
    scene = Scene().pending("llm-a", FULL)
    return scene.node("n1", "8", allocatable, labels={key: state}, taints=list(taints))


def short(name: str, has: str, wants: str, *holders: tuple[str, str]) -> Scene:
    """A pod waits for a part of a node with free GPUs, which pods without GPUs hold."""
    scene = Scene().pending("llm-a", f"0/1 nodes are available: 1 Insufficient {name}.")
    request(scene, name, wants)
    for owner, amount in holders:
        scene.pod(f"{owner}-0", owner=("StatefulSet", owner), gpus="", labels={"app": owner})
        request(scene, name, amount)
    offers = {GPU: "8", name: has}
    return scene.node("n1", status={"capacity": offers, "allocatable": offers})


def request(scene: Scene, name: str, amount: str) -> None:
    """What the last pod requests, beside GPUs."""
    resources: dict[str, Any] = scene.pods[-1]["spec"]["containers"][0]["resources"]
    resources["limits"].pop("memory")
    resources["requests"] = {name: amount}


def without(name: str, *containers: Any, init: Any = ()) -> Scene:
    """A node without GPUs, on which a pod of the operator is not ready."""
    scene = Scene().pending("llm-a", FULL).node("n1", "8", "0")
    more: dict[str, Any] = {"owner": ("DaemonSet", name), "gpus": "", "labels": {"app": name}}
    scene.pod(f"{name}-x", *containers, status={"initContainerStatuses": list(init)}, **more)
    return scene.pod("of-another-node", ready=False, on="n2", **more)


NODES: Final = {
    "a-driver-pod-that-crashes": (
        CauseCode.GPUS_UNAVAILABLE,
        without("nvidia-driver-daemonset", waiting("CrashLoopBackOff")),
        (
            "offers 0 of its 8 nvidia.com/gpu: no device is healthy, or the plugin is gone; ",
            "gone; pod chat/nvidia-driver-daemonset-x is not ready: CrashLoopBackOff (main)",
            "see the events and the log of pod chat/nvidia-driver-daemonset-x",
            "describe pod nvidia-driver-daemonset-x",
        ),
    ),
    "a-device-plugin-that-waits-for-the-toolkit": (
        CauseCode.GPUS_UNAVAILABLE,
        without(
            "nvidia-device-plugin-daemonset",
            waiting("PodInitializing"),
            init=[{"name": "toolkit-validation", "state": {"running": {}}}],
        ),
        ("nvidia-device-plugin-daemonset-x is not ready: Init (toolkit-validation runs)",),
    ),
    "a-device-plugin-of-amd-whose-image-is-missing": (
        CauseCode.GPUS_UNAVAILABLE,
        without("amdgpu-device-plugin-daemonset", waiting("ImagePullBackOff")),
        ("pod chat/amdgpu-device-plugin-daemonset-x is not ready: ImagePullBackOff (main)",),
    ),
    **{
        f"a-driver-upgrade-that-failed-by-{key.partition('.')[0]}": (
            CauseCode.GPUS_UNAVAILABLE,
            worked_on(key, "upgrade-failed", "8", CORDONED),
            (
                "node n1 offers its GPUs to no new pod, or not as wanted: the driver upgrade has",
                f"upgrade has failed ({key}=upgrade-failed)",
                f"set the label {key} of the node to upgrade-required",
            ),
        )
        for key in (
            UPGRADE,
            "vgpu.nvidia.com/vgpu-driver-upgrade-state",
            "operator.amd.com/gpu-driver-upgrade-state",
            "rebellions.ai/npu-driver-upgrade-state",
        )
    },
    **{
        f"a-driver-upgrade-at-{state}": (
            CauseCode.TAINT,
            worked_on(UPGRADE, state, "8", CORDONED),
            (
                f"the operator upgrades the driver of the node ({UPGRADE}={state})",
                "wait until it is over; if it does not move, see the operator's events",
                "kubectl describe node n1",
            ),
        )
        for state in ("cordon-required", "drain-required", "validation-required")
    },
    "a-driver-pod-that-is-replaced": (
        CauseCode.GPUS_UNAVAILABLE,
        worked_on(UPGRADE, "pod-restart-required", "0"),
        (f"offers 0 of its 8 {GPU}: the operator upgrades the driver of the node",),
    ),
    "a-queued-driver-upgrade": (
        CauseCode.TAINT,
        worked_on(UPGRADE, "upgrade-required", "8", CORDONED),
        ("1 GPU node (n1) is cordoned", "kubectl uncordon n1"),
    ),
    "a-mig-layout-that-failed": (
        CauseCode.GPUS_UNAVAILABLE,
        worked_on(MIG, "failed"),
        (f"the MIG configuration has failed ({MIG}=failed)", "see the log of nvidia-mig-manager"),
    ),
    "a-mig-layout-that-is-made": (
        CauseCode.GPUS_UNAVAILABLE,
        worked_on(MIG, "pending", "0"),
        (f"the MIG configuration is being changed ({MIG}=pending)",),
    ),
    "amd-partitions-that-failed": (
        CauseCode.GPUS_UNAVAILABLE,
        worked_on(DCM, "failure", "8", AMD),
        (f"the GPU partitioning has failed ({DCM}=failure)", "device config manager"),
    ),
    "amd-partitions-that-are-made": (
        CauseCode.TAINT,
        worked_on("x", "y", "8", AMD),
        ("its GPUs are being partitioned", "remove the taint from the node"),
    ),
    "cpu-that-others-hold": (
        CauseCode.UNSCHEDULABLE,
        short("cpu", "16", "8", ("web", "4500m"), ("db", "8")),
        (
            "Insufficient cpu; the nodes with a free nvidia.com/gpu have at most 3.5 cpu free ",
            "(node n1), and the pods ask for 8; cpu of these nodes is held: StatefulSet chat/db 8",
            "StatefulSet chat/web 4.5",
            "lower requests.cpu of the pod template to at most 3.5, keep pods without GPUs from",
        ),
    ),
    "memory-that-others-hold": (
        CauseCode.UNSCHEDULABLE,
        short("memory", "256Gi", "64Gi", ("cache", "200Gi")),
        ("at most 56Gi memory free (node n1)", "StatefulSet chat/cache 200Gi"),
    ),
    "local-storage-that-others-hold": (
        CauseCode.UNSCHEDULABLE,
        short("ephemeral-storage", "100Gi", "50Gi", ("batch", "80Gi")),
        ("StatefulSet chat/batch 80Gi", "requests.ephemeral-storage"),
    ),
}
