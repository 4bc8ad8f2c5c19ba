"""Commands about a pod and its workload, which findings print."""

from __future__ import annotations

import shlex
from typing import Final

from adapter.pipeline.cluster import changes
from adapter.pipeline.cluster.fixes import Fix, lasting
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.changed import workload_of
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.page import ExporterPage, Trouble

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


def show_page(each: SeenPod, page: ExporterPage) -> str:
    """Return a command that shows a page of a pod; its log if kubectl cannot show the page.

    ``kubectl get --raw`` does not print what an answer with an error's status says.
    """
    if not page.proxy or page.trouble is Trouble.STATUS:
        return logs(each)
    return f"kubectl get --raw {shlex.quote(page.proxy)}"


def delete(each: SeenPod) -> str:
    """Return a command that makes a pod's workload create it again.

    Nothing creates a pod without an owner again: the command only shows it.
    """
    if each.pod.owner is None:
        return describe(each)
    return f"kubectl -n {each.pod.ref.namespace} delete pod {each.pod.ref.name}"


def show(each: SeenPod) -> str:
    """Return a command that shows the manifest of a pod's workload."""
    return f"kubectl -n {each.pod.ref.namespace} get {owner(each)} -o yaml"


def set_env(
    facts: Facts, each: SeenPod, advice: str, name: str, value: str | None
) -> tuple[str, str | Fix]:
    """Return what to do, and how a variable changes in the template of a pod's workload.

    Args:
        advice: what to do, in words.
        name: of the variable.
        value: None removes it.
    """
    of = workload_of(facts, each)
    if of is not None and of.kind in _TEMPLATED:
        return advice, lasting(of, changes.set_env(of, name, value))
    said = f"set {name} to {value}" if value is not None else f"remove {name}"
    where = "in its manifest, and create the pod again: variables of a pod cannot be changed"
    if of is not None:
        where = f"in the manifest of {owner(each)}, which owns the pod"
    return f"{advice}: {said} {where}", ""
