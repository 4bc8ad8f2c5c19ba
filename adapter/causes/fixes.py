"""Commands that correct a workload's pod template, for its causes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, Final

from adapter.causes.facts import KubeKey
from adapter.cluster.taints import Taint

_STRATEGIC: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
"""Kinds whose lists of containers merge by name."""


def on(key: KubeKey, verb: str, rest: str = "") -> str:
    """Return a command about one object: ``kubectl -n chat describe deployment llm``."""
    name = f"{shlex.quote(key.kind.lower())} {shlex.quote(key.name)}"
    return f"kubectl -n {shlex.quote(key.namespace)} {verb} {name}{f' {rest}' if rest else ''}"


def edit(key: KubeKey) -> str:
    """Return a command that opens an object in an editor."""
    return on(key, "edit")


def describe(key: KubeKey) -> str:
    """Return a command that shows an object with its events."""
    return on(key, "describe")


def merge_template(key: KubeKey, pod_spec: dict[str, Any]) -> str:
    """Return a command that merges fields into the pods' spec of a workload."""
    if key.kind not in _STRATEGIC:
        return edit(key)
    return merge(key, {"spec": {"template": {"spec": pod_spec}}}, "strategic")


def merge(key: KubeKey, body: dict[str, Any], way: str = "merge") -> str:
    """Return a command that merges fields into an object."""
    text = shlex.quote(json.dumps(body, separators=(",", ":")))
    return on(key, "patch", f"--type={way} -p {text}")


def patch(key: KubeKey, rows: Sequence[dict[str, Any]]) -> str:
    """Return a command that applies a JSON patch."""
    text = shlex.quote(json.dumps(rows, separators=(",", ":")))
    return on(key, "patch", f"--type=json -p {text}")


def tolerate(key: KubeKey, taints: Sequence[Taint], *, has_some: bool) -> str:
    """Return a command that adds tolerations to a workload's template.

    Args:
        has_some: the template has tolerations already.
    """
    if key.kind not in _STRATEGIC:
        return edit(key)
    rows = [{"key": each.key, "operator": "Exists", "effect": each.effect} for each in taints]
    path = "/spec/template/spec/tolerations"
    if has_some:
        return patch(key, [{"op": "add", "path": f"{path}/-", "value": row} for row in rows])
    return patch(key, [{"op": "add", "path": path, "value": rows}])
