"""Commands about a pod and its workload, which findings print."""

from __future__ import annotations

import shlex
from typing import Final

from adapter.pipeline.cluster import changes
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.changedobjects import workload_of
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.page import ExporterPage, Trouble

_TEMPLATED: Final = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds whose pod template ``kubectl set env`` changes."""
_HASH: Final = "pod-template-hash"


def owner(pod: SeenPod) -> str:
    """Return a pod's workload as kubectl names it: the Deployment of a ReplicaSet, or the pod."""
    by = pod.pod.owner
    if by is None:
        return f"pod/{pod.pod.ref.name}"
    if by.kind == "ReplicaSet":
        suffix = f"-{pod.pod.labels.get(_HASH, '')}"
        if len(suffix) > 1 and by.name.endswith(suffix):
            return f"deployment/{by.name.removesuffix(suffix)}"
    return f"{by.kind.lower()}/{by.name}"


def logs(pod: SeenPod) -> str:
    """Return a command that shows the end of a pod's log."""
    return f"kubectl -n {pod.pod.ref.namespace} logs {pod.pod.ref.name} --tail=20"


def describe(pod: SeenPod) -> str:
    """Return a command that shows a pod with its events."""
    return f"kubectl -n {pod.pod.ref.namespace} describe pod {pod.pod.ref.name}"


def show_page(pod: SeenPod, page: ExporterPage) -> str:
    """Return a command that shows a page of a pod; its log if kubectl cannot show the page.

    ``kubectl get --raw`` does not print what an answer with an error's status says.
    """
    if not page.proxy or page.trouble is Trouble.STATUS:
        return logs(pod)
    return f"kubectl get --raw {shlex.quote(page.proxy)}"


def delete(pod: SeenPod) -> str:
    """Return a command that makes a pod's workload create it again.

    Nothing creates a pod without an owner again: the command only shows it.
    """
    if pod.pod.owner is None:
        return describe(pod)
    return f"kubectl -n {pod.pod.ref.namespace} delete pod {pod.pod.ref.name}"


def show(pod: SeenPod) -> str:
    """Return a command that shows the manifest of a pod's workload."""
    return f"kubectl -n {pod.pod.ref.namespace} get {owner(pod)} -o yaml"


def set_env(
    facts: Facts, pod: SeenPod, advice: str, name: str, value: str | None
) -> tuple[str, str | Fix]:
    """Return what to do, and how a variable changes in the template of a pod's workload.

    Args:
        advice: what to do, in words.
        name: of the variable.
        value: None removes it.
    """
    of = workload_of(facts, pod)
    if of is not None and of.kind in _TEMPLATED:
        return advice, make_lasting(of, changes.set_env(of, name, value))
    words = f"set {name} to {value}" if value is not None else f"remove {name}"
    where = "in its manifest, and create the pod again: variables of a pod cannot be changed"
    if of is not None:
        where = f"in the manifest of {owner(pod)}, which owns the pod"
    return f"{advice}: {words} {where}", ""
