"""Situations of rollouts that do not go on, of Deployments and StatefulSets."""

from __future__ import annotations

from typing import Any, Final

from adapter.answers.causes import CauseCode
from tests.adapter.answers.causes.scene import Scene, ago, waiting

Row = tuple[CauseCode, Scene, tuple[str, ...]]
LATE: Final = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": 'ReplicaSet "llm-b22" has timed out progressing.',
    "lastTransitionTime": ago(900),
}
PULL: Final = waiting("ImagePullBackOff", "not found")


def deployment(status: dict[str, Any], *, chain: bool = True, **spec: Any) -> Scene:
    """A Deployment of two ready pods, with fields of its spec and status."""
    scene = Scene(chain=False)
    scene.workload("Deployment", "llm", replicas=2, status={"replicas": 2, **status})
    scene.workloads[0][1]["spec"] |= spec
    if chain:
        scene.workload("ReplicaSet", "llm-7f9", replicas=2, **_owned())
        scene.pod("llm-7f9-a").pod("llm-7f9-b")
    return scene


def _owned() -> dict[str, Any]:
    row = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm", "uid": "llm"}
    return {"ownerReferences": [{**row, "controller": True}]}


def stateful(revision: str = "llm-1", name: str = "llm-0", replicas: int = 1, **spec: Any) -> Scene:
    """A StatefulSet whose pod cannot pull its image."""
    scene = Scene("StatefulSet", replicas=replicas, status={"updateRevision": "llm-2"})
    scene.workloads[0][1]["spec"] |= spec
    labels = {"app": "llm", "controller-revision-hash": revision}
    return scene.pod(name, PULL, owner=("StatefulSet", "llm"), labels=labels, phase="Pending")


ROLLOUTS: Final[dict[str, Row]] = {
    "a-paused-deployment-with-a-new-template": (
        CauseCode.ROLLOUT,
        deployment({"updatedReplicas": 0}, paused=True),
        (
            "is paused (spec.paused), so its present template is not rolled out",
            '\'{"spec":{"paused":false}}\'',
        ),
    ),
    "a-deployment-that-was-created-paused": (
        CauseCode.ROLLOUT,
        deployment({"replicas": 0}, chain=False, paused=True),
        ("so it creates no pods",),
    ),
    "a-rollout-that-waits-after-each-pod": (
        CauseCode.ROLLOUT,
        deployment(
            {"updatedReplicas": 1, "readyReplicas": 2, "availableReplicas": 1}, minReadySeconds=3600
        ),
        ("waits 3600 s after each new pod is ready (minReadySeconds)", '"minReadySeconds":10'),
    ),
    "a-rollout-that-makes-no-progress": (
        CauseCode.ROLLOUT,
        deployment({"updatedReplicas": 1, "conditions": [LATE]}),
        ("has made no progress for 15m (ProgressDeadlineExceeded)", "kubectl rollout undo"),
    ),
    "a-statefulset-that-replaces-nothing": (
        CauseCode.IMAGE_PULL,
        stateful(updateStrategy={"type": "OnDelete"}),
        ("updateStrategy OnDelete replaces a pod only when", "kubectl -n chat delete pod llm-0"),
    ),
    "a-statefulset-with-a-partition": (
        CauseCode.IMAGE_PULL,
        stateful(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
        (
            "pods below partition 2 of its updateStrategy keep the old one",
            '"partition":0',
            "&& kubectl -n chat delete pod llm-0",
        ),
    ),
    "a-pod-above-the-partition": (
        CauseCode.IMAGE_PULL,
        stateful(
            name="llm-3",
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
        ),
        ("does not replace a pod that is not ready", "delete pod llm-3"),
    ),
    "a-statefulset-that-creates-one-pod-after-another": (
        CauseCode.IMAGE_PULL,
        stateful("llm-2", replicas=3),
        (
            "2 further pods are not created before (OrderedReady)",
            "then delete llm-0: a StatefulSet does not replace a pod that is not ready",
        ),
    ),
}
"""Name -> the code, the scene, and what text, fix and command contain together."""


def _corrected() -> Scene:
    """The old ReplicaSet could not create its pods, and the corrected one has."""
    scene = deployment({"updatedReplicas": 2}, chain=False)
    lost = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}
    for name, revision in (("llm-7f9", "1"), ("llm-b22", "2")):
        notes = {"annotations": {"deployment.kubernetes.io/revision": revision}}
        scene.workload("ReplicaSet", name, replicas=2, **_owned(), **notes)
    scene.status("llm-7f9", lost)
    for name in ("llm-b22-a", "llm-b22-b"):
        scene.pod(name, owner=("ReplicaSet", "llm-b22"))
    return scene


ROLLED: Final[dict[str, Scene]] = {
    "an-old-template-that-was-refused": _corrected(),
    "a-paused-deployment-whose-template-is-rolled-out": deployment(
        {"updatedReplicas": 2}, paused=True
    ),
    "ready-pods-that-do-not-count-yet": deployment(
        {"updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 0}, minReadySeconds=3600
    ),
    "a-rollout-that-waits-for-a-moment": deployment(
        {"updatedReplicas": 1, "readyReplicas": 2, "availableReplicas": 1}, minReadySeconds=10
    ),
}
