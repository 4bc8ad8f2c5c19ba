"""DaemonSets of exporters, and why one of them has no pod on a node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.pipeline.cluster.changes import ChangedObject, add_tolerations, edit
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.managers import Manager, manager_of
from adapter.pipeline.cluster.nodeaffinity import matches
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod, read_pod
from adapter.pipeline.cluster.taints import Taint, Toleration, repels

_OF_NODES: Final = "node.kubernetes.io/"
"""Taints for the state of a node. Pods of DaemonSets tolerate them without a toleration."""
_SYSTEM: Final = ("kubernetes.io", "k8s.io")
"""Domains of labels that the cluster sets: nobody corrects them by hand."""


class SeenDaemonSet(NamedTuple):
    """A DaemonSet."""

    namespace: str
    name: str
    pod: SeenPod
    """A pod as its template describes it."""
    selector: Mapping[str, str]
    """Node labels that its pods need."""
    tolerations: tuple[Toleration, ...]
    terms: Sequence[Mapping[str, Any]]
    """``nodeSelectorTerms`` of the required node affinity: one of them has to match."""
    manager: Manager | None = None
    """What writes it again."""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Obstacle(NamedTuple):
    """Why a DaemonSet has no pod on a node."""

    message: str
    fix: str
    action: str | Fix
    """A command, or the change of the DaemonSet as it lasts."""


def read_daemonset(content: Mapping[str, Any]) -> SeenDaemonSet:
    """Read a DaemonSet; raises msgspec.ValidationError, or KeyError without a template."""
    meta, template = content["metadata"], content["spec"]["template"]
    namespace, name = str(meta.get("namespace") or "default"), str(meta["name"])
    pod_meta = {**(template.get("metadata") or {}), "namespace": namespace, "name": name}
    pod = read_pod({"metadata": pod_meta, "spec": template.get("spec") or {}})
    return SeenDaemonSet(
        namespace,
        name,
        pod,
        pod.spec.node_selector,
        tuple(pod.spec.tolerations),
        pod.spec.node_terms or (),
        manager_of(meta, namespace),
    )


def obstacle(daemonset: SeenDaemonSet, node: SeenNode, of: ChangedObject) -> Obstacle:
    """Return why a DaemonSet has no pod on a node, as far as its template and the node show it.

    Args:
        of: the DaemonSet as an object to change.
    """
    lacks = [*_selector_lacks(daemonset, node), *_affinity_lacks(daemonset, node)]
    if lacks:
        return _of_labels(daemonset, node, lacks, of)
    taints = [taint for taint in node.taints if _repels(taint, daemonset)]
    if taints:
        return _of_taints(daemonset, taints, of)
    return Obstacle(
        f"DaemonSet {daemonset.key} selects the node, and has no pod on it",
        "see the events of the DaemonSet",
        of.kubectl("describe", ""),
    )


class _Lack(NamedTuple):
    """A label that a node needs."""

    text: str
    change: str
    """Argument of ``kubectl label``; empty if the label is not one to set."""


def _selector_lacks(daemonset: SeenDaemonSet, node: SeenNode) -> Iterator[_Lack]:
    for key, value in sorted(daemonset.selector.items()):
        if node.metadata.labels.get(key) != value:
            yield _Lack(f"{key}={value}", _settable_change(key, f"{key}={value}"))


def _affinity_lacks(daemonset: SeenDaemonSet, node: SeenNode) -> Sequence[_Lack]:
    """Return what the node lacks for the term of the affinity that lacks least."""
    labels, fields = node.metadata.labels, {"metadata.name": node.name}
    terms = []
    for term in daemonset.terms:
        rows = [row for row in term.get("matchExpressions") or () if not matches(row, labels)]
        field_rows = [row for row in term.get("matchFields") or () if not matches(row, fields)]
        terms.append([*map(_of_row, rows), *(_Lack(_words(row), "") for row in field_rows)])
    return min(terms, key=len, default=[])


def _of_row(row: Mapping[str, Any]) -> _Lack:
    key, values = str(row["key"]), row.get("values") or ()
    change = {
        "In": f"{key}={values[0]}" if values else "",
        "Exists": f"{key}=true",
        "NotIn": f"{key}-",
        "DoesNotExist": f"{key}-",
    }.get(str(row["operator"]), "")
    return _Lack(_words(row), _settable_change(key, change))


def _words(row: Mapping[str, Any]) -> str:
    values = ", ".join(map(str, row.get("values") or ()))
    text = f"{row['key']} {row['operator']}"
    return f"{text} [{values}]" if values else text


def _settable_change(key: str, change: str) -> str:
    domain = key.rpartition("/")[0]
    system = any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _SYSTEM)
    return "" if system else change


def _of_labels(
    daemonset: SeenDaemonSet, node: SeenNode, lacks: Sequence[_Lack], of: ChangedObject
) -> Obstacle:
    keys = [lack.change.partition("=")[0].removesuffix("-") for lack in lacks]
    labels = [f"{key}={node.metadata.labels[key]}" for key in keys if key in node.metadata.labels]
    has = f"has {', '.join(labels)}" if labels else "has no such label"
    wanted = " and ".join(lack.text for lack in lacks)
    text = f"DaemonSet {daemonset.key} runs only on nodes with {wanted}, and {node.name} {has}"
    if not all(lack.change for lack in lacks):
        words = "correct the node selector or the affinity"
        return Obstacle(text, f"{words} of the DaemonSet", make_lasting(of, edit(of, words)))
    changes = " ".join(shlex.quote(lack.change) for lack in lacks)
    overwrite = " --overwrite" if labels and "=" in changes else ""
    fix = "if the exporter belongs on the node, change the node's labels"
    return Obstacle(text, fix, f"kubectl label node {shlex.quote(node.name)} {changes}{overwrite}")


def _repels(taint: Taint, daemonset: SeenDaemonSet) -> bool:
    return not taint.key.startswith(_OF_NODES) and repels(taint, daemonset.tolerations)


def _of_taints(daemonset: SeenDaemonSet, taints: Sequence[Taint], of: ChangedObject) -> Obstacle:
    names = ", ".join(map(str, taints))
    rows = [{"key": t.key, "operator": "Exists", "effect": t.effect} for t in taints]
    plural = "s" if len(taints) > 1 else ""
    change = add_tolerations(of, rows, first=not daemonset.tolerations)
    return Obstacle(
        f"DaemonSet {daemonset.key} does not tolerate the taint{plural} {names} of the node",
        f"{change.words} to the DaemonSet",
        make_lasting(of, change),
    )
