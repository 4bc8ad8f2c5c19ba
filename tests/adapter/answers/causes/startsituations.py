"""Situations of pods that do not start or crash, by what registries, kubelets and servers say."""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from tests.adapter.answers.causes.othersituations import creating, refused, rejected
from tests.adapter.answers.causes.scene import Json, Scene, ago, ended, waiting

Row = tuple[CauseCode, Scene, tuple[str, ...]]


def pulling(message: str, reason: str = "ErrImagePull", **more: Any) -> Scene:
    """A pod whose image is not pulled."""
    return Scene(replicas=1).pod("llm-a", waiting(reason, message), phase="Pending", **more)


def crashed(message: str, code: int = 1, **more: Any) -> Scene:
    """A pod that crashes with a message."""
    row = waiting("CrashLoopBackOff", "back-off", restartCount=5, **ended("Error", 60, code))
    row["lastState"]["terminated"] |= {"message": message, **more}
    return Scene(replicas=1).pod("llm-a", row, since=3600)


def unstarted(message: str, reason: str = "CreateContainerError") -> Scene:
    """A pod whose container is not started."""
    return Scene(replicas=1).pod("llm-a", waiting(reason, message))


def _arm() -> Scene:
    text = 'failed to pull "registry.example/llm:1": no match for platform in manifest: not found'
    return pulling(text).node("n1", labels={"kubernetes.io/arch": "arm64"})


def _lost_secret() -> Scene:
    scene = pulling("pull access denied: authentication required", imagePullSecrets=[{"name": "r"}])
    text = "Unable to retrieve some image pull secrets (r); attempting to pull may not succeed."
    return scene.event("Pod", "llm-a", "FailedToRetrieveImagePullSecret", text, 20, 9)


def _probed(probe: str, message: str) -> Scene:
    scene = crashed("", 137)
    return scene.event("Pod", "llm-a", "Unhealthy", f"{probe} probe failed: {message}", 30, 12)


def _rejected(reason: str, message: str) -> Scene:
    status = {"reason": reason, "message": message}
    scene = Scene().pod("llm-b", phase="Failed", ready=False, since=60, status=status)
    return scene.pod("llm-a", phase="Pending", ready=False, since=60)


def _unready(message: str) -> Scene:
    scene = Scene().pod("llm-a", ready=False, since=7200)
    return scene.event("Pod", "llm-a", "Unhealthy", f"Readiness probe failed: {message}", 20, 90)


def _gone(code: int, **more: Any) -> Json:
    state = {"terminated": {"exitCode": code, "finishedAt": ago(600), **more}}
    return {"name": "main", "ready": False, "state": state}


def _being_created(**node: Any) -> Scene:
    scene = Scene(replicas=1)
    scene.pod("llm-a", waiting("ContainerCreating"), phase="Pending", since=3600)
    return scene.node("n1", **node) if node else scene


_START: Final = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
    "could not apply required modification to OCI specification: failed to inject CDI devices: "
    "unresolvable CDI devices runtime.nvidia.com/gpu=all"
)
_NOT_READY: Final = {"conditions": [{"type": "Ready", "status": "Unknown", "message": "stopped"}]}

STARTS: Final[dict[str, Row]] = {
    "an-image-of-another-architecture": (
        CauseCode.IMAGE_PULL,
        _arm(),
        ("node n1 is arm64", "nodeSelector kubernetes.io/arch", "edit deployment llm"),
    ),
    "a-registry-that-limits-pulls": (
        CauseCode.IMAGE_PULL,
        pulling("toomanyrequests: You have reached your pull rate limit"),
        ("limits how often anonymous users pull",),
    ),
    "a-private-registry-without-a-secret": (
        CauseCode.IMAGE_PULL,
        pulling("failed to authorize: 401 Unauthorized"),
        ("the pods name no imagePullSecrets", "in the pods' own namespace"),
    ),
    "a-secret-for-a-registry-of-another-namespace": (
        CauseCode.IMAGE_PULL,
        _lost_secret(),
        ("Unable to retrieve some image pull secrets (r)", "create secret docker-registry"),
    ),
    "a-repository-that-is-private-or-missing": (
        CauseCode.IMAGE_PULL,
        pulling("pull access denied, repository does not exist or may require authorization"),
        ("correct the image's name, or, if the registry is private",),
    ),
    "an-image-that-must-not-be-pulled": (
        CauseCode.IMAGE_PULL,
        pulling("", "ErrImageNeverPull"),
        ("set imagePullPolicy to IfNotPresent",),
    ),
    "an-image-with-a-short-name": (
        CauseCode.IMAGE_PULL,
        pulling("short name mode is enforcing, but image name llm:1 returns", "ImageInspectError"),
        ("write the image with its registry",),
    ),
    "a-registry-without-encryption": (
        CauseCode.IMAGE_PULL,
        pulling("http: server gave HTTP response to HTTPS client"),
        ("list it as insecure",),
    ),
    "a-cdi-specification-that-is-old": (
        CauseCode.CONTAINER_CONFIG,
        crashed(_START, 128, reason="StartError"),
        ("cannot be started (StartError)", "unresolvable CDI devices", "nvidia-ctk cdi generate"),
    ),
    "a-driver-of-another-version": (
        CauseCode.CONTAINER_CONFIG,
        unstarted("nvidia-container-cli: nvml error: driver/library version mismatch"),
        ("reboot the node",),
    ),
    "an-image-for-a-newer-driver": (
        CauseCode.CONTAINER_CONFIG,
        unstarted("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8"),
        ("update the driver of the node, or use an image of an older CUDA",),
    ),
    "a-command-that-does-not-exist": (
        CauseCode.CONTAINER_CONFIG,
        crashed('exec: "vllm": executable file not found in $PATH', 127, reason="StartError"),
        ("correct command and args", "edit deployment llm"),
    ),
    "a-hook-that-fails": (
        CauseCode.CONTAINER_CONFIG,
        unstarted("", "PostStartHookError"),
        ("correct lifecycle.postStart",),
    ),
    "a-user-that-may-not-be-root": (
        CauseCode.CONTAINER_CONFIG,
        unstarted("container has runAsNonRoot and image will run as root"),
        ("set securityContext.runAsUser",),
    ),
    "no-address-for-the-pod": (
        CauseCode.CONTAINER_CONFIG,
        creating("FailedCreatePodSandBox", 'plugin type="aws-cni": failed to assign an IP address'),
        ("has no free address",),
    ),
    "a-storage-driver-that-is-missing": (
        CauseCode.CONTAINER_CONFIG,
        creating(
            "FailedMount", "driver name x.csi not found in the list of registered CSI drivers"
        ),
        ("install the CSI driver",),
    ),
    "containers-that-are-being-created-for-long": (
        CauseCode.CONTAINER_CONFIG,
        _being_created(),
        ("is being created for 60m: no event says why", "describe pod llm-a"),
    ),
    "containers-that-are-being-created-on-a-lost-node": (
        CauseCode.NEVER_READY,
        _being_created(status=_NOT_READY),
        ("node n1 is not Ready: stopped",),
    ),
    "devices-that-are-unhealthy": (
        CauseCode.CONTAINER_CONFIG,
        rejected(phase="Pending", ready=False),
        ("see the log of the device plugin", "the kubelet if it keeps rejecting"),
    ),
    "a-node-that-counts-less-room": (
        CauseCode.CONTAINER_CONFIG,
        _rejected("OutOfnvidia.com/gpu", "Node does not have enough resource: nvidia.com/gpu"),
        ("the kubelet counts less room than the scheduler",),
    ),
    "two-slices-of-a-shared-gpu": (
        CauseCode.CONTAINER_CONFIG,
        _rejected(
            "UnexpectedAdmissionError",
            "Allocate failed due to rpc error: code = Unknown desc = request for 'nvidia.com/gpu: "
            "2' too large: maximum request size for shared resources is 1, which is unexpected",
        ),
        ("request one device in the pod template", "failRequestsGreaterThanOne: false"),
    ),
    "a-driver-that-cuda-does-not-support": (
        CauseCode.CRASH_LOOP,
        crashed("Error 803: system has unsupported display driver / cuda driver combination"),
        ("update the driver of the node",),
    ),
    "numbers-that-an-older-gpu-does-not-have": (
        CauseCode.CRASH_LOOP,
        crashed("Bfloat16 is only supported on GPUs with compute capability of at least 8.0"),
        ("--dtype half",),
    ),
    "an-engine-for-another-gpu": (
        CauseCode.CRASH_LOOP,
        crashed(
            "The engine plan file is generated on an incompatible device, expecting compute 8.9 "
            "got compute 9.0"
        ),
        ("build the TensorRT engine again",),
    ),
    "a-network-that-nccl-does-not-find": (
        CauseCode.CRASH_LOOP,
        crashed("torch.distributed.DistBackendError: NCCL error, unhandled system error"),
        ("NCCL_SOCKET_IFNAME",),
    ),
    "gpu-memory-that-is-exhausted": (
        CauseCode.CRASH_LOOP,
        crashed("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB"),
        ("the memory of the GPU is too small", "--tensor-parallel-size"),
    ),
    "a-container-without-a-gpu": (
        CauseCode.CRASH_LOOP,
        crashed("RuntimeError: Failed to infer device type"),
        ("the container sees no GPU", "runtimeClassName nvidia"),
    ),
    "a-driver-that-is-too-old": (
        CauseCode.CRASH_LOOP,
        crashed("CUDA driver version is insufficient for CUDA runtime version"),
        ("update the driver of the node",),
    ),
    "a-program-of-another-architecture": (
        CauseCode.CRASH_LOOP,
        crashed("exec /usr/bin/python3: exec format error"),
        ("built for the architecture of the node",),
    ),
    "shared-memory-that-is-too-small": (
        CauseCode.CRASH_LOOP,
        crashed("NCCL error: unable to write to /dev/shm", 135),
        ("a bus error", "emptyDir of medium Memory at /dev/shm"),
    ),
    "a-model-that-needs-a-token": (
        CauseCode.CRASH_LOOP,
        crashed("huggingface_hub.errors.GatedRepoError: 401 Client Error"),
        ("HF_TOKEN",),
    ),
    "a-program-that-ends-well": (
        CauseCode.CRASH_LOOP,
        crashed("", 0),
        ("the program ends without an error", "a server runs in the foreground"),
    ),
    "a-container-that-has-ended": (
        CauseCode.CRASH_LOOP,
        Scene(replicas=1).pod("llm-a", _gone(0), since=3600),
        ("has ended: 0 restarts", "belongs into a Job"),
    ),
    "a-startup-probe-that-kills": (
        CauseCode.CRASH_LOOP,
        _probed("Startup", "HTTP probe failed with statuscode: 503"),
        ("the kubelet kills it, because its startup probe fails", "raise failureThreshold"),
    ),
    "a-crash-that-fails-the-probe-too": (
        CauseCode.CRASH_LOOP,
        crashed("CUDA error: invalid device ordinal", 1).event(
            "Pod", "llm-a", "Unhealthy", "Liveness probe failed: connection refused", 30, 12
        ),
        ("as many GPUs as the container requests",),
    ),
    "a-liveness-probe-that-kills": (
        CauseCode.CRASH_LOOP,
        _probed("Liveness", "context deadline exceeded"),
        ("because its liveness probe fails", "raise timeoutSeconds", "startup probe that lasts"),
    ),
    "a-probe-of-a-wrong-path": (
        CauseCode.NEVER_READY,
        _unready("HTTP probe failed with statuscode: 404"),
        ("correct the path of the probe",),
    ),
    "a-probe-of-a-wrong-port": (
        CauseCode.NEVER_READY,
        _unready("dial tcp 10.0.0.9:8000: connect: connection refused"),
        ("nothing listens on the probe's port",),
    ),
    "a-priority-class-that-is-missing": (
        CauseCode.ADMISSION,
        refused('pods "llm-x" is forbidden: no PriorityClass with name urgent was found'),
        ("create this PriorityClass", "edit statefulset llm"),
    ),
    "a-runtime-class-that-is-missing": (
        CauseCode.ADMISSION,
        refused('pods "llm-x" is forbidden: pod rejected: RuntimeClass "nvidia" not found'),
        ("create this RuntimeClass", "correct runtimeClassName"),
    ),
    "a-namespace-that-ends": (
        CauseCode.ADMISSION,
        refused("unable to create new content in namespace chat because it is being terminated"),
        ("the namespace is being deleted",),
    ),
    "a-webhook-whose-server-is-named": (
        CauseCode.ADMISSION,
        refused(
            'Internal error occurred: failed calling webhook "a.example": failed to call webhook: '
            'Post "https://hook.mesh.svc:443/inject": context deadline exceeded'
        ),
        ("it is Service mesh/hook", "kubectl -n mesh get pods,endpointslices"),
    ),
}
"""Name -> the code, the scene, and what text, fix and command contain together."""

STARTED: Final[dict[str, Scene]] = {
    "an-init-container-that-has-ended": Scene().pod(
        "llm-a",
        status={"initContainerStatuses": [_gone(0)]},
        initContainers=[{"name": "main"}],
    ),
    "a-container-of-a-job-that-has-ended": Scene("Job", replicas=1).pod(
        "llm-a", _gone(0), owner=("Job", "llm"), since=300
    ),
    "a-container-that-ended-a-moment-ago": Scene(replicas=1).pod(
        "llm-a",
        {**_gone(1), "state": {"terminated": {"exitCode": 1, "finishedAt": ago(5)}}},
        since=300,
    ),
}
