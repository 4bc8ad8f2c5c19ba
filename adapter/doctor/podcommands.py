"""Commands about a pod and its workload, which findings print."""

from __future__ import annotations

from typing import Final

from adapter.cluster.podobjects import SeenPod

_TEMPLATED: Final = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds whose pod template ``kubectl set env`` changes."""
_HASH: Final = "pod-template-hash"


def owner(each: SeenPod) -> str:
    """Return a pod's workload as kubectl names it: the Deployment of a ReplicaSet, or the pod."""
    by = each.pod.owner
    if by is None:
        return f"pod/{each.pod.ref.name}"
    if by.kind == "ReplicaSet":
        suffix = f"-{each.pod.labels.get(_HASH, '')}"
        if len(suffix) > 1 and by.name.endswith(suffix):
            return f"deployment/{by.name.removesuffix(suffix)}"
    return f"{by.kind.lower()}/{by.name}"


def logs(each: SeenPod) -> str:
    """Return a command that shows the end of a pod's log."""
    return f"kubectl -n {each.pod.ref.namespace} logs {each.pod.ref.name} --tail=20"


def describe(each: SeenPod) -> str:
    """Return a command that shows a pod with its events."""
    return f"kubectl -n {each.pod.ref.namespace} describe pod {each.pod.ref.name}"


def delete(each: SeenPod) -> str:
    """Return a command that makes a pod's workload create it again."""
    return f"kubectl -n {each.pod.ref.namespace} delete pod {each.pod.ref.name}"


def show(each: SeenPod) -> str:
    """Return a command that shows the manifest of a pod's workload."""
    return f"kubectl -n {each.pod.ref.namespace} get {owner(each)} -o yaml"


def set_env(each: SeenPod, fix: str, change: str) -> tuple[str, str]:
    """Return the fix and the command that changes a variable in the template of a pod's workload.

    Args:
        fix: what to do, in words.
        change: ``NAME=value``, or ``NAME-`` to remove the variable.
    """
    named = owner(each)
    kind = named.partition("/")[0]
    if kind in {known.lower() for known in _TEMPLATED}:
        return fix, f"kubectl -n {each.pod.ref.namespace} set env {named} {change}"
    name, equals, value = change.partition("=")
    said = f"set {name} to {value}" if equals else f"remove {name.removesuffix('-')}"
    where = "in its manifest, and create the pod again: variables of a pod cannot be changed"
    if kind != "pod":
        where = f"in the manifest of {named}, which owns the pod"
    return f"{fix}: {said} {where}", ""
