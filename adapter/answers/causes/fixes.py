"""Changes that correct a workload's pod template, for its causes, and commands that show more."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, Final

from adapter.answers.causes.facts import KubeKey
from adapter.pipeline.cluster import changes
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange
from adapter.pipeline.cluster.taints import Taint

_STRATEGIC: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
"""Kinds whose lists of containers merge by name."""


def on(key: KubeKey, verb: str, rest: str = "") -> str:
    """Return a command about one object: ``kubectl -n chat describe deployment llm``."""
    name = f"{shlex.quote(key.kind.lower())} {shlex.quote(key.name)}"
    return f"kubectl -n {shlex.quote(key.namespace)} {verb} {name}{f' {rest}' if rest else ''}"


def edit(of: ChangedObject) -> ObjectChange:
    """Return a change that a person has to write; the cause has its words."""
    return changes.edit(of, "")


def describe(key: KubeKey) -> str:
    """Return a command that shows an object with its events."""
    return on(key, "describe")


def merge_template(of: ChangedObject, pod_spec: dict[str, Any]) -> ObjectChange:
    """Return the change that merges fields into the pods' spec of a workload."""
    if of.kind not in _STRATEGIC:
        return edit(of)
    return merge(of, {"spec": {"template": {"spec": pod_spec}}}, "strategic")


def merge(of: ChangedObject, body: dict[str, Any], way: str = "merge") -> ObjectChange:
    """Return the change that merges fields into an object."""
    text = shlex.quote(json.dumps(body, separators=(",", ":")))
    return ObjectChange("", of.kubectl("patch", f"--type={way} -p {text}"))


def tolerate(of: ChangedObject, taints: Sequence[Taint], *, has_some: bool) -> ObjectChange:
    """Return the change that adds tolerations to a workload's template.

    Args:
        has_some: the template has tolerations already.
    """
    if of.kind not in _STRATEGIC:
        return edit(of)
    rows = [{"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in taints]
    return changes.add_tolerations(of, rows, first=not has_some)
