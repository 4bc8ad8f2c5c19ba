"""Situations of an HPA's target: each has one cause, or none. Messages are those of Kubernetes."""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from tests.adapter.answers.causes.nodesituations import NODES
from tests.adapter.answers.causes.othersituations import OTHERS, QUIET
from tests.adapter.answers.causes.placesituations import PLACED, PLACES
from tests.adapter.answers.causes.rolloutsituations import ROLLED, ROLLOUTS
from tests.adapter.answers.causes.scene import GPU, NOW, Scene, ago, ended, owned, waiting
from tests.adapter.answers.causes.startsituations import STARTED, STARTS

INSUFFICIENT: Final = f"0/3 nodes are available: 3 Insufficient {GPU}. preemption: 0/3 nodes are"
UNTOLERATED: Final = "0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: ml}."
SECURITY: Final = (
    'pods "llm-7f9-x" is forbidden: violates PodSecurity "restricted:latest": '
    'allowPrivilegeEscalation != false (container "main" must set '
    "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
    '"main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or '
    'container "main" must set securityContext.runAsNonRoot=true), seccompProfile (pod or '
    'container "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)
QUOTA: Final = (
    'pods "llm-7f9-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, '
    "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
)
SPECIFY: Final = 'pods "llm-0" is forbidden: failed quota: gpus: must specify requests.memory'
DENIED: Final = 'admission webhook "validate.example" denied the request: no team label'
SCALED: Final = "New size: 6; reason: pods metric gpu_utilization above target"


def failed(message: str, seconds: float = 600.0) -> dict[str, str]:
    """The condition of a ReplicaSet that cannot create pods."""
    return {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
        "lastTransitionTime": ago(seconds),
    }


def statefulset() -> Scene:
    """A StatefulSet of two pods that has one."""
    return Scene("StatefulSet").pod("llm-0", owner=("StatefulSet", "llm"))


def leaders() -> Scene:
    """A LeaderWorkerSet of one group: the leader's pod owns the StatefulSet of its workers."""
    scene = Scene("LeaderWorkerSet", replicas=1)
    scene.workload("StatefulSet", "llm", replicas=1, **owned("LeaderWorkerSet", "llm"))
    scene.pod("llm-0", owner=("StatefulSet", "llm"))
    return scene.workload("StatefulSet", "llm-0", replicas=1, labels={}, **owned("Pod", "llm-0"))


def rollout(seconds: float = 900.0, replicas: int = 1, **strategy: Any) -> Scene:
    """A Deployment whose new pod has no node."""
    rule = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    scene = Scene(replicas=replicas, strategy={**rule, **strategy})
    for number in range(replicas):
        scene.pod(f"llm-7f9-{number}")
    scene.workload("ReplicaSet", "llm-b22", replicas=1, **owned("Deployment", "llm"))
    new = {"app": "llm", "pod-template-hash": "b22"}
    return scene.pending(
        "llm-b22-a", INSUFFICIENT, seconds, labels=new, owner=("ReplicaSet", "llm-b22")
    )


def sliced(*taints: dict[str, str], **more: Any) -> Scene:
    """A pod that waits for a claim of devices with taints; ``more`` is of its spec."""
    scene = Scene(replicas=1).pending(
        "llm-a",
        "0/1 nodes are available: 1 cannot allocate all claims.",
        gpus="",
        resourceClaims=[{"name": "gpu"}],
        **more,
    )
    devices = [{"name": "gpu-0", "taints": list(taints)}, {"name": "gpu-1"}]
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n1", "devices": devices}
    scene.slices.append({"metadata": {"name": "n1-gpu"}, "spec": spec})
    return scene


def reset(
    times: int,
    seconds: float = 30.0,
    manager: str = "argocd-controller",
    at: float = 40.0,
    part: str = "f:replicas",
) -> Scene:
    """A Deployment that the HPA sets to 6 replicas, and another program to 2."""
    scene = Scene(chain=False)
    fields: dict[str, Any] = {"f:spec": {part: {}}}
    row = {"manager": manager, "time": ago(seconds), "fieldsV1": fields}
    scene.workload("Deployment", "llm", replicas=2, managedFields=[row] if manager else [])
    return scene.event("HorizontalPodAutoscaler", "llm", "SuccessfulRescale", SCALED, at, times)


def two_workloads(**more: Any) -> Scene:
    """Two Deployments whose pods have the labels that both select."""
    scene = Scene(replicas=1).pod("llm-7f9-a")
    scene.workload("Deployment", "embed", replicas=1)
    scene.workload("ReplicaSet", "embed-c33", replicas=1, **owned("Deployment", "embed"))
    labels = {"app": "llm", "pod-template-hash": "c33"}
    return scene.pod("embed-c33-a", owner=("ReplicaSet", "embed-c33"), labels=labels, **more)


def silent(seconds: float) -> Scene:
    """An HPA that its controller has not written to."""
    scene = Scene(replicas=1).pod("llm-7f9-a")
    scene.hpa["metadata"]["creationTimestamp"] = ago(seconds)
    scene.hpa["status"] = {}
    return scene


def bounded(seconds: float) -> Scene:
    """An HPA whose spec was changed, and whose target is larger than its maximum."""
    scene = Scene(replicas=9)
    row = {"manager": "kubectl", "time": ago(seconds), "fieldsV1": {"f:spec": {}}}
    scene.hpa["metadata"]["managedFields"] = [row]
    return scene


def sick(name: str, **more: Any) -> Scene:
    """A pod that holds an unhealthy device."""
    row = {"name": name, "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}
    status = {"name": "main", "ready": True, "allocatedResourcesStatus": [row]}
    return Scene(replicas=1).pod("llm-7f9-a", status, ready=True, **more)


def crashing(*statuses: dict[str, Any], **more: Any) -> Scene:
    """A pod of a Deployment with these containers."""
    return Scene(replicas=1).pod("llm-7f9-a", *statuses, **more)


def of_keda() -> Scene:
    """An HPA that KEDA made."""
    scene = Scene().metrics("External", "s0-gpu")
    row = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "llm"}
    scene.hpa["metadata"]["ownerReferences"] = [{**row, "controller": True}]
    return scene


LOOP: Final = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
PULL: Final = waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/llm:1"')
DOWN: Final = {"status": "False", "reason": "MissingEndpoints", "message": "no addresses"}
LATE: Final = {
    "status": "False",
    "reason": "FailedDiscoveryCheck",
    "message": "failing or missing response: context deadline exceeded",
}
UP: Final = {"status": "True", "reason": "Passed"}
METRICS: Final = "v1beta1.metrics.k8s.io"
STATUSES: Final = {
    "401": "it does not accept the API server's certificate",
    "403": "add .svc and the addresses of the Services to NO_PROXY",
    "404": "the program behind it does not serve this API",
}
EXTERNAL: Final = "v1beta1.external.metrics.k8s.io"
TAINT: Final = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
XID: Final = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}

FOUND: Final[dict[str, tuple[CauseCode, Scene, tuple[str, ...]]]] = {
    **OTHERS,
    **NODES,
    **STARTS,
    **PLACES,
    **ROLLOUTS,
    "a-quota-of-gpus": (
        CauseCode.QUOTA,
        Scene(replicas=3).pod("llm-7f9-a").status("llm-7f9", failed(QUOTA)),
        (
            "2 pods are not created for 10m",
            "4 of 4 used, 1 more each",
            '"requests.nvidia.com/gpu":"6"',
        ),
    ),
    "a-quota-by-events": (
        CauseCode.QUOTA,
        statefulset().event("StatefulSet", "llm", "FailedCreate", f"create Pod: {QUOTA}", 90, 7),
        ("1 pod is not created", "tried 7 times", "patch resourcequota gpus"),
    ),
    "a-quota-that-needs-requests": (
        CauseCode.QUOTA,
        Scene().status("llm-7f9", failed(SPECIFY)),
        ("needs every container to state requests.memory",),
    ),
    "a-quota-for-the-workers-of-a-group": (
        CauseCode.QUOTA,
        leaders().status("llm-0", failed(QUOTA)),
        ("1 pod is not created", "ResourceQuota gpus is used up"),
    ),
    "pod-security": (
        CauseCode.POD_SECURITY,
        Scene().status("llm-7f9", failed(SECURITY)),
        ("Pod Security restricted:latest", '"runAsNonRoot":true', '"drop":["ALL"]'),
    ),
    "pod-security-of-host-paths": (
        CauseCode.POD_SECURITY,
        Scene().status(
            "llm-7f9",
            failed(
                'pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes '
                '(volume "models")'
            ),
        ),
        ("hostPath volumes", "kubectl -n chat edit deployment llm"),
    ),
    "pod-security-by-events": (
        CauseCode.POD_SECURITY,
        statefulset().event("StatefulSet", "llm", "FailedCreate", SECURITY, 60),
        ("patch statefulset llm",),
    ),
    "a-webhook": (
        CauseCode.ADMISSION,
        Scene().status("llm-7f9", failed(DENIED)),
        ("denied the request: no team label", "kubectl -n chat describe replicaset llm-7f9"),
    ),
    "a-range-of-limits": (
        CauseCode.ADMISSION,
        Scene().status(
            "llm-7f9",
            failed(
                'pods "x" is forbidden: maximum memory usage per Container is 8Gi, but limit is '
                "16Gi"
            ),
        ),
        ("2 pods are not created for 10m: maximum memory usage per Container is 8Gi",),
    ),
    "an-account-that-is-missing": (
        CauseCode.ADMISSION,
        Scene().status(
            "llm-7f9",
            failed(
                'pods "x" is forbidden: error looking up service account chat/llm: '
                'serviceaccount "llm" not found'
            ),
        ),
        ('serviceaccount "llm" not found', "kubectl -n chat create serviceaccount llm"),
    ),
    "a-crash-loop": (
        CauseCode.CRASH_LOOP,
        crashing({**LOOP, "restartCount": 12, **ended("Error", 90, 1, "CUDA error 999")}),
        (
            "12 restarts in 60m, the last time 90s ago",
            "exit code 1",
            "CUDA error 999",
            "--previous",
        ),
    ),
    "a-crash-loop-of-a-command": (
        CauseCode.CRASH_LOOP,
        crashing({**LOOP, "restartCount": 2, **ended("Error", 9, 127)}),
        ("exit code 127 (the command was not found)",),
    ),
    "a-crash-loop-of-an-init-container": (
        CauseCode.CRASH_LOOP,
        crashing(
            {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}},
            phase="Pending",
            status={"initContainerStatuses": [{**LOOP, "name": "download", "restartCount": 4}]},
        ),
        ("container download of 1 pod (llm-7f9-a)", "-c download"),
    ),
    "a-crash-loop-of-a-worker": (
        CauseCode.CRASH_LOOP,
        leaders().pod(
            "llm-0-1", {**LOOP, "restartCount": 3}, owner=("StatefulSet", "llm-0"), labels={}
        ),
        ("1 pod (llm-0-1)",),
    ),
    "out-of-memory": (
        CauseCode.OUT_OF_MEMORY,
        crashing({**LOOP, "restartCount": 7, **ended("OOMKilled", 60, 137)}),
        (
            "limit of 16Gi (OOMKilled): 7 restarts in 60m, the last time 60s ago",
            '"memory":"32Gi"',
            "that of the GPU",
        ),
    ),
    "out-of-memory-a-moment-ago": (
        CauseCode.OUT_OF_MEMORY,
        crashing(
            {"name": "main", "ready": True, "restartCount": 1, **ended("OOMKilled", 600, 137)},
            ready=True,
        ),
        ("1 restart in 60m, the last time 10m ago",),
    ),
    "out-of-memory-now": (
        CauseCode.OUT_OF_MEMORY,
        crashing(
            {
                "name": "main",
                "state": {"terminated": {"reason": "OOMKilled", "finishedAt": ago(5)}},
            },
            memory="1500M",
        ),
        ("limit of 1500M", '"memory":"3000000000"'),
    ),
    "an-image-that-does-not-exist": (
        CauseCode.IMAGE_PULL,
        crashing(PULL, phase="Pending").event(
            "Pod",
            "llm-7f9-a",
            "Failed",
            'Failed to pull image "registry.example/llm:1": rpc error: code = NotFound',
            40,
        ),
        ("image registry.example/llm:1 of 1 pod", "code = NotFound", "correct the image's name"),
    ),
    "an-image-of-a-private-registry": (
        CauseCode.IMAGE_PULL,
        crashing(waiting("ErrImagePull", "failed to authorize: 401 Unauthorized"), phase="Pending"),
        ("imagePullSecrets", "describe pod llm-7f9-a"),
    ),
    "an-image-with-a-wrong-name": (
        CauseCode.IMAGE_PULL,
        crashing(waiting("InvalidImageName", "invalid reference format"), phase="Pending"),
        ("(InvalidImageName)",),
    ),
    "a-secret-that-is-missing": (
        CauseCode.CONTAINER_CONFIG,
        crashing(waiting("CreateContainerConfigError", 'secret "hf" not found'), phase="Pending"),
        ('secret "hf" not found',),
    ),
    "a-runtime-without-a-driver": (
        CauseCode.CONTAINER_CONFIG,
        crashing(waiting("RunContainerError", "nvidia-container-cli: driver not loaded")),
        ("driver not loaded",),
    ),
    "a-container-that-cannot-be-created": (
        CauseCode.CONTAINER_CONFIG,
        crashing(waiting("CreateContainerError", "no command specified")),
        ("(CreateContainerError)",),
    ),
    "never-ready": (
        CauseCode.NEVER_READY,
        Scene()
        .pod("llm-7f9-a", ready=False, since=10800)
        .event(
            "Pod",
            "llm-7f9-a",
            "Unhealthy",
            "Readiness probe failed: HTTP probe failed with statuscode: 503",
            20,
            214,
        ),
        ("runs and is not ready for 3h", "statuscode: 503 (214 times)", "logs llm-7f9-a"),
    ),
    "never-ready-without-events": (
        CauseCode.NEVER_READY,
        Scene().pod("llm-7f9-a", ready=False).pod("llm-7f9-b", ready=False, since=7200),
        ("2 pods (llm-7f9-a, llm-7f9-b) run and are not ready for 120m",),
    ),
    "never-started": (
        CauseCode.NEVER_READY,
        statefulset()
        .pod("llm-1", ready=False, owner=("StatefulSet", "llm"))
        .event("Pod", "llm-1", "Unhealthy", "Startup probe failed: connection refused", 5, 40),
        ("Startup probe failed: connection refused (40 times)",),
    ),
    "a-taint": (
        CauseCode.TAINT,
        Scene().pending("llm-a", UNTOLERATED).node("n1", taints=[TAINT]),
        ("no toleration for the taint dedicated=ml:NoSchedule of 1 GPU node (n1)", "tolerations"),
    ),
    "a-taint-beside-full-nodes": (
        CauseCode.TAINT,
        Scene(pod={"tolerations": [{"key": "other", "operator": "Exists"}]})
        .pending("llm-a", INSUFFICIENT, tolerations=[{"key": "other", "operator": "Exists"}])
        .node("n1")
        .node("n2", taints=[TAINT]),
        ("(n2)", "/spec/template/spec/tolerations/-"),
    ),
    "a-cordoned-node": (
        CauseCode.TAINT,
        Scene()
        .pending("llm-a", INSUFFICIENT)
        .node("n1", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        ("1 GPU node (n1) is cordoned", "kubectl uncordon n1"),
    ),
    "a-node-that-is-not-reachable": (
        CauseCode.TAINT,
        Scene()
        .pending("llm-a", INSUFFICIENT)
        .node("n1", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]),
        ("kubectl describe node n1",),
    ),
    "no-gpu-of-eight": (
        CauseCode.GPUS_UNAVAILABLE,
        Scene().pending("llm-a", INSUFFICIENT).node("n1", "8", "0").node("n2", "8", "8"),
        ("node n1 offers 0 of its 8 nvidia.com/gpu", "the plugin is gone", "describe node n1"),
    ),
    "six-gpus-of-eight": (
        CauseCode.GPUS_UNAVAILABLE,
        Scene().pending("llm-a", INSUFFICIENT).node("n1", "8", "6"),
        ("offers 6 of its 8 nvidia.com/gpu: the plugin reports 2 devices unhealthy", "Xid"),
    ),
    "a-gpu-node-without-gpus": (
        CauseCode.GPUS_UNAVAILABLE,
        Scene()
        .pending("llm-a", INSUFFICIENT)
        .node("n1", "0", labels={"nvidia.com/gpu.present": "true"}),
        ("node n1 is labeled as a GPU node and offers no GPU (nvidia.com/gpu is 0)",),
    ),
    "an-unhealthy-device": (
        CauseCode.DEVICE_UNHEALTHY,
        sick(GPU),
        ("1 device that is reported unhealthy", "GPU-1 of nvidia.com/gpu", "on node n1"),
    ),
    "an-unhealthy-device-of-a-claim": (
        CauseCode.DEVICE_UNHEALTHY,
        sick("claim:gpu", gpus=""),
        ("claim:gpu", "kubectl -n chat delete pod llm-7f9-a"),
    ),
    "an-unhealthy-device-of-another-vendor": (
        CauseCode.DEVICE_UNHEALTHY,
        sick("amd.com/gpu", on="n7"),
        ("amd.com/gpu", "node n7"),
    ),
    "a-tainted-device": (
        CauseCode.DEVICE_TAINT,
        sliced(XID),
        ("1 of 2 devices of gpu.nvidia.com on n1", "gpu.nvidia.com/xid=79:NoExecute (gpu-0)"),
    ),
    "a-device-for-others": (
        CauseCode.DEVICE_TAINT,
        sliced(TAINT),
        ("kubectl get resourceslice n1-gpu",),
    ),
    "a-device-with-two-taints": (
        CauseCode.DEVICE_TAINT,
        sliced(TAINT, XID),
        ("dedicated=ml:NoSchedule, gpu.nvidia.com",),
    ),
    "a-rollout-that-waits-for-itself": (
        CauseCode.ROLLOUT,
        rollout(),
        ("waits for itself for 15m", "(llm-b22-a) needs a free nvidia.com/gpu", '"maxSurge":0'),
    ),
    "a-rollout-past-its-deadline": (
        CauseCode.ROLLOUT,
        rollout(70).status(
            "llm", {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
        ),
        ("(ProgressDeadlineExceeded)",),
    ),
    "a-rollout-of-three": (
        CauseCode.ROLLOUT,
        rollout(replicas=3),
        ("3 pods (llm-7f9-0",),
    ),
    "no-room": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", INSUFFICIENT).node("n1"),
        ("1 pod (llm-a) waits for a node for 10m: 0/3 nodes are available: 3 Insufficient",),
    ),
    "no-room-for-memory": (
        CauseCode.UNSCHEDULABLE,
        Scene().pending("llm-a", "0/1 nodes are available: 1 Insufficient memory.", gpus=""),
        ("1 Insufficient memory",),
    ),
    "a-selector-of-no-node": (
        CauseCode.UNSCHEDULABLE,
        Scene()
        .pending(
            "llm-a",
            "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
            volumes=[{"name": "models", "persistentVolumeClaim": {"claimName": "weights"}}],
        )
        .node("n1"),
        ("had volume node affinity conflict", "the claim weights", "kubectl get pv -o custom"),
    ),
    "a-taint-of-another-pool": (
        CauseCode.UNSCHEDULABLE,
        Scene()
        .pending("llm-a", INSUFFICIENT, nodeSelector={"pool": "a"})
        .node("n1", labels={"pool": "a"})
        .node("n2", labels={"pool": "b"}, taints=[TAINT])
        .node("n3", "8", "0", labels={"pool": "b"}),
        ("3 Insufficient nvidia.com/gpu",),
    ),
    "a-queue-of-kueue": (
        CauseCode.SCHEDULING_GATE,
        Scene().pending(
            "llm-a",
            "Scheduling is blocked",
            reason="SchedulingGated",
            schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
        ),
        ("is held back for 10m by the scheduling gate kueue.x-k8s.io/admission", "get localqueues"),
    ),
    "two-workloads-with-one-label": (
        CauseCode.FOREIGN_PODS,
        two_workloads(),
        ("matches 1 pod (embed-c33-a) of Deployment chat/embed too",),
    ),
    "a-pod-of-nobody": (
        CauseCode.FOREIGN_PODS,
        Scene(replicas=1).pod("llm-7f9-a").pod("by-hand", owner=None, labels={"app": "llm"}),
        ("(by-hand) of no workload",),
    ),
    "a-statefulset-with-the-label": (
        CauseCode.FOREIGN_PODS,
        Scene(replicas=1)
        .pod("llm-7f9-a")
        .workload("StatefulSet", "cache", replicas=1)
        .pod("cache-0", owner=("StatefulSet", "cache"), labels={"app": "llm"}),
        ("StatefulSet chat/cache",),
    ),
    "a-size-that-argo-resets": (
        CauseCode.REPLICAS_RESET,
        reset(2),
        (
            "6 replicas 2 times",
            "argocd-controller sets spec.replicas back to 2",
            "ignoreDifferences",
        ),
    ),
    "a-size-that-flux-resets": (
        CauseCode.REPLICAS_RESET,
        reset(5, manager="kustomize-controller"),
        ("kustomize-controller", "remove spec.replicas from the manifest in git"),
    ),
    "a-size-that-the-applier-resets": (
        CauseCode.REPLICAS_RESET,
        reset(4, part="f:template"),
        ("probably argocd-controller, which applies it, sets spec.replicas back to 2",),
    ),
    "a-size-that-somebody-resets": (
        CauseCode.REPLICAS_RESET,
        reset(4, manager=""),
        ("another program sets",),
    ),
    "another-namespace": (
        CauseCode.WRONG_NAMESPACE,
        Scene(chain=False).elsewhere("prod"),
        (
            "no Deployment llm in namespace chat, and there is one in prod",
            '"namespace":"prod"',
            "kubectl -n chat delete hpa llm",
        ),
    ),
    "two-other-namespaces": (
        CauseCode.WRONG_NAMESPACE,
        Scene(chain=False).know(
            elsewhere=[
                *Scene().elsewhere("b").facts["elsewhere"],
                *Scene().elsewhere("a").facts["elsewhere"],
            ]
        ),
        ("there is one in a and b",),
    ),
    **{
        f"a-metrics-api-that-answers-{status}": (
            CauseCode.METRICS_API_DOWN,
            Scene()
            .metrics("Resource", "cpu")
            .apiservices(
                (METRICS, {**LATE, "message": f"bad status from https://x:443: {status}"})
            ),
            (words,),
        )
        for status, words in STATUSES.items()
    },
    "a-metrics-server-without-pods": (
        CauseCode.METRICS_API_DOWN,
        Scene().metrics("Resource", "cpu").apiservices((METRICS, DOWN)),
        (
            "Service kube-system/metrics-server, which serves metrics.k8s.io,",
            "does not answer for 10m",
            "MissingEndpoints",
        ),
    ),
    "a-metrics-server-that-is-frozen": (
        CauseCode.METRICS_API_DOWN,
        Scene().metrics("ContainerResource", "cpu").apiservices((METRICS, LATE)),
        ("context deadline exceeded", "need not be installed again"),
    ),
    "an-adapter-that-does-not-answer": (
        CauseCode.METRICS_API_DOWN,
        Scene().know(unanswered={"custom.metrics.k8s.io": "service unavailable"}),
        ("the server of custom.metrics.k8s.io does not answer, so gpu_utilization has no value",),
    ),
    "no-metrics-server": (
        CauseCode.METRICS_API_MISSING,
        Scene().metrics("ContainerResource", "cpu").apiservices(("v1.apps", UP)),
        ("nothing serves metrics.k8s.io, which has cpu and memory, so cpu has no value",),
    ),
    "no-metrics-server-for-memory": (
        CauseCode.METRICS_API_MISSING,
        Scene().metrics("Resource", "memory").apiservices(("v1beta1.custom.metrics.k8s.io", UP)),
        ("memory has no value",),
    ),
    "no-external-metrics": (
        CauseCode.METRICS_API_MISSING,
        Scene().metrics("External", "queue").apiservices(("v1.apps", UP)),
        ("nothing serves external.metrics.k8s.io", "externalMetrics.enabled=true"),
    ),
    "external-metrics-of-another-program": (
        CauseCode.METRICS_API_TAKEN,
        of_keda().apiservices((EXTERNAL, UP)),
        (
            "Service kube-system/metrics-server serves external.metrics.k8s.io, not KEDA",
            "a cluster has one server for this API",
            "docs/delegation.md",
        ),
    ),
    "external-metrics-of-keda-that-the-adapter-does-not-ask-for": (
        CauseCode.METRICS_API_TAKEN,
        of_keda()
        .apiservices((EXTERNAL, UP))
        .served("gpu-metrics-adapter")
        .know(refused=frozenset({"external.metrics.k8s.io"})),
        ("Service kube-system/gpu-metrics-adapter serves", "and ask KEDA's metrics server for"),
    ),
    "custom-metrics-of-another-program": (
        CauseCode.METRICS_API_TAKEN,
        Scene()
        .apiservices(("v1beta1.custom.metrics.k8s.io", UP))
        .know(refused=frozenset({"custom.metrics.k8s.io"})),
        ("serves custom.metrics.k8s.io, not gpu-metrics-adapter, and has no gpu_utilization",),
    ),
    "external-metrics-of-the-adapter-that-another-program-serves": (
        CauseCode.METRICS_API_TAKEN,
        Scene()
        .metrics("External", "inference_requests_waiting")
        .apiservices((EXTERNAL, UP))
        .know(refused=frozenset({"external.metrics.k8s.io"})),
        ("has no inference_requests_waiting", "delegation.delegates"),
    ),
    "external-metrics-that-keda-serves": (
        CauseCode.METRICS_API_TAKEN,
        Scene()
        .metrics("External", "gpu_utilization")
        .apiservices((EXTERNAL, UP))
        .served("keda-metrics-apiserver"),
        (
            "KEDA serves external.metrics.k8s.io (Service kube-system/keda-metrics-apiserver)",
            "ScaledObjects only, so gpu_utilization has no value",
            "with type Pods or Object",
        ),
    ),
    "a-controller-that-never-came": (
        CauseCode.CONTROLLER_STOPPED,
        silent(300),
        ("it has not written a status since the HPA was created for 5m",),
    ),
    "a-controller-whose-lease-ended": (
        CauseCode.CONTROLLER_STOPPED,
        Scene().pod("llm-7f9-a").pod("llm-7f9-b").know(controller_seen=NOW - 600),
        ("this HPA keeps its size; its lease was renewed",),
    ),
    "a-controller-that-ignores-a-change": (
        CauseCode.CONTROLLER_STOPPED,
        bounded(600),
        ("the target has 9 replicas, outside 1..8, and the spec was changed 10m ago",),
    ),
}
"""Name -> the code, the scene, and what text, fix and command contain together."""

NONE: Final[dict[str, Scene]] = {
    **QUIET,
    **STARTED,
    **PLACED,
    **ROLLED,
    "all-is-well": Scene().pod("llm-7f9-a").pod("llm-7f9-b"),
    "a-pod-that-waits-for-a-moment": Scene().pending("llm-a", INSUFFICIENT, 5),
    "a-rollout-under-way": rollout(20),
    "a-rollout-that-may-end-an-old-pod": Scene(replicas=4).pod("llm-7f9-a"),
    "pods-that-are-being-created": Scene(replicas=8).pod("llm-7f9-a"),
    "an-old-refusal": statefulset().event("StatefulSet", "llm", "FailedCreate", QUOTA, 7200),
    "a-refusal-of-pods-that-exist-by-now": Scene(replicas=1)
    .pod("llm-7f9-a")
    .event("ReplicaSet", "llm-7f9", "FailedCreate", QUOTA, 30),
    "memory-that-was-exhausted-yesterday": crashing(
        {"name": "main", "ready": True, "restartCount": 1, **ended("OOMKilled", 86400, 137)},
        ready=True,
    ),
    "a-crash-that-is-over": crashing(
        {"name": "main", "ready": True, "restartCount": 3, **ended("Error", 600)}, ready=True
    ),
    "an-image-that-is-pulled": crashing(waiting("ContainerCreating"), phase="Pending", since=300),
    "a-model-that-is-loaded": Scene().pod("llm-7f9-a", ready=False, since=300),
    "a-taint-that-the-pods-tolerate": Scene().pod("llm-7f9-a").node("n1", taints=[TAINT]),
    "a-device-that-is-healthy": crashing(
        {
            "name": "main",
            "ready": True,
            "allocatedResourcesStatus": [
                {"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}
            ],
        },
        ready=True,
    ),
    "a-pod-that-has-ended": two_workloads(phase="Succeeded"),
    "a-size-that-was-set-once": reset(1),
    "a-size-that-was-reset-yesterday": reset(9, 90000, at=90000),
    "another-target-elsewhere": Scene(chain=False).know(elsewhere=[]),
    "external-metrics-that-another-program-has": Scene()
    .metrics("External", "queue_of_a_cloud")
    .apiservices((EXTERNAL, UP))
    .know(refused=frozenset({"external.metrics.k8s.io"})),
    "external-metrics-of-keda-that-the-adapter-asks-for": of_keda()
    .apiservices((EXTERNAL, UP))
    .served("gpu-metrics-adapter"),
    "external-metrics-of-keda": of_keda()
    .apiservices((EXTERNAL, UP))
    .served("keda-operator-metrics-apiserver"),
    "a-metrics-server-that-answers": Scene().metrics("Resource", "cpu").apiservices((METRICS, UP)),
    "a-new-hpa": silent(10),
    "a-change-a-moment-ago": bounded(10),
    "a-size-that-somebody-sets-below-the-minimum": bounded(600).event(
        "HorizontalPodAutoscaler", "llm", "SuccessfulRescale", "New size: 8; reason: above", 20
    ),
    "a-controller-that-renewed-its-lease": Scene().know(controller_seen=NOW - 9),
}
