"""Changes of objects that last: each as the command, or in the words, of what manages the object.

:func:`lasting` is the one place that decides how an object is changed. ``kubectl`` changes the
object itself only if nothing writes it again (:mod:`adapter.cluster.managers`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.cluster import charts
from adapter.cluster.managers import Manager, Way
from adapter.cluster.workload import plural

CORE: Final = ("", "apps", "batch", "autoscaling")
"""API groups whose kinds kubectl knows by their bare name."""
_SHORT: Final = {"HorizontalPodAutoscaler": "hpa"}


class ChangedObject(NamedTuple):
    """The object that a fix changes, and what is known about it."""

    kind: str
    """As the API writes it: ``DaemonSet``."""
    namespace: str
    """Empty for an object without one."""
    name: str
    manager: Manager | None = None
    """None if nothing writes the object again."""
    env: Sequence[Mapping[str, Any]] | None = None
    """The variables of its first container, without which a list of values cannot be written
    whole; None if they are not known."""
    owner: Mapping[str, Any] | None = None
    """The manifest of the owner that ``manager`` names; None if it is not known."""
    above: Manager | None = None
    """What manages that owner."""
    group: str = ""
    """API group; empty for kinds that kubectl knows by their bare name."""

    @property
    def resource(self) -> str:
        """As kubectl names the kind: ``daemonset``, ``clusterpolicies.nvidia.com``."""
        if self.group in CORE:
            return _SHORT.get(self.kind, self.kind.lower())
        return f"{plural(self.kind)}.{self.group}"

    @property
    def words(self) -> str:
        """Kind and name for a reader."""
        kind = "HPA" if self.kind in _SHORT else self.kind
        return f"{kind} {self.name}"

    def kubectl(self, verb: str, arguments: str, *, slash: bool = False) -> str:
        """Return a command about the object: ``kubectl -n NAMESPACE VERB KIND NAME ARGUMENTS``."""
        place = f" -n {shlex.quote(self.namespace)}" if self.namespace else ""
        named = f"{self.resource} {shlex.quote(self.name)}"
        if slash:
            named = shlex.quote(f"{self.resource}/{self.name}")
        return f"kubectl{place} {verb} {named} {arguments}".rstrip()


class ObjectChange(NamedTuple):
    """What is to be different."""

    words: str
    """What to do, as an order: ``set spec.maxReplicas to 10``. The object is named after it."""
    command: str
    """A command that does it to an object that nothing writes again; empty without one."""
    env: tuple[str, str | None] | None = None
    """A variable of the container and its value; None removes it."""
    fields: Mapping[str, Any] | None = None
    """Path -> value of fields that are set: ``spec.maxReplicas`` -> 10."""
    tolerations: Sequence[Mapping[str, Any]] = ()
    """Tolerations that the pod template gets."""
    values: Mapping[str, str] | None = None
    """Key -> value in the values of the object's chart."""


class Fix(NamedTuple):
    """How a change is made so that it lasts."""

    text: str
    """What to do, in words."""
    command: str = ""
    """A command that does it; empty if none can."""
    by: str = ""
    """What manages the object, in words; empty if nothing does."""

    @property
    def line(self) -> str:
        """The command, or else the words."""
        return self.command or self.text


def set_env(of: ChangedObject, name: str, value: str | None) -> ObjectChange:
    """Return the change of a variable in the pod template; None removes it."""
    argument = shlex.quote(f"{name}-" if value is None else f"{name}={value}")
    words = f"remove the variable {name}" if value is None else f"set the variable {name}={value}"
    return ObjectChange(words, of.kubectl("set env", argument, slash=True), env=(name, value))


def scale(of: ChangedObject, replicas: int) -> ObjectChange:
    """Return the change of a workload's size."""
    command = of.kubectl("scale", f"--replicas={replicas}", slash=True)
    return ObjectChange(
        f"set spec.replicas to {replicas}", command, fields={"spec.replicas": replicas}
    )


def set_fields(of: ChangedObject, fields: Mapping[str, Any]) -> ObjectChange:
    """Return the change of fields; one of a list is changed by a JSON patch.

    Args:
        fields: path -> value: ``spec.maxReplicas``, ``spec.metrics[0].pods.metric.name``.
    """
    words = " and ".join(f"set {path} to {_shown(value)}" for path, value in fields.items())
    if not any("[" in path for path in fields):
        return ObjectChange(words, _merge(of, fields), fields=fields)
    rows = [{"op": "add", "path": pointer(at), "value": value} for at, value in fields.items()]
    return ObjectChange(words, patch(of, rows), fields=fields)


def annotate(of: ChangedObject, notes: Mapping[str, str | None]) -> ObjectChange:
    """Return the change of annotations of the pod template, where they outlive the pod; None
    removes one.
    """
    body = {"spec": {"template": {"metadata": {"annotations": dict(notes)}}}}
    command = of.kubectl("patch", f"--type=merge -p {_json(body)}", slash=True)
    kept = [f'{name}: "{value}"' for name, value in notes.items() if value is not None]
    gone = [name for name, value in notes.items() if value is None]
    parts = [f"set the annotation{'s' if len(kept) > 1 else ''} {', '.join(kept)}"] if kept else []
    parts += [f"remove the annotation {', '.join(gone)}"] if gone else []
    return ObjectChange(f"{' and '.join(parts)} of the pod template", command)


def set_values(values: Mapping[str, str]) -> ObjectChange:
    """Return the change of values of the chart that an object comes from."""
    words = " and ".join(f"set {key} to {value}" for key, value in values.items())
    return ObjectChange(f"{words} in the values of the chart", "", values=values)


def add_tolerations(
    of: ChangedObject, rows: Sequence[Mapping[str, Any]], *, first: bool
) -> ObjectChange:
    """Return the change that adds tolerations to a pod template.

    Args:
        first: whether the template has none yet.
    """
    at = "/spec/template/spec/tolerations"
    change: list[Mapping[str, Any]] = [
        {"op": "add", "path": f"{at}/-", "value": row} for row in rows
    ]
    if first:
        change = [{"op": "add", "path": at, "value": list(rows)}]
    keys = ", ".join(f"{row['key']} ({row['operator']}, {row['effect']})" for row in rows)
    words = f"add the toleration{'s' if len(rows) > 1 else ''} {keys}"
    return ObjectChange(words, patch(of, change), tolerations=rows)


def edit(of: ChangedObject, words: str) -> ObjectChange:
    """Return a change that a person has to write."""
    return ObjectChange(words, of.kubectl("edit", ""))


def patch(of: ChangedObject, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the command of a JSON patch."""
    return of.kubectl("patch", f"--type=json -p {_json(rows)}")


def pointer(path: str) -> str:
    """Return the path of a field as a JSON pointer."""
    return "/" + re.sub(r"[.\[\]]+", "/", path).strip("/")


def lasting(of: ChangedObject, change: ObjectChange) -> Fix:
    """Return how a change of an object is made so that nothing reverts it."""
    if of.manager is None:
        return Fix(f"{change.words} in {of.words}", change.command)
    return _by_manager(of, of.manager, change)._replace(by=of.manager.source)


def _by_manager(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    if manager.way is Way.NOWHERE:
        return Fix(
            f"nothing changes {of.words} for good, because {manager.tool} writes it again: where "
            f"it allows, {change.words} in its own settings, or run an own one beside it"
        )
    if manager.way is Way.UNKNOWN:
        return Fix(
            f"{change.words} in {of.words} of namespace {of.namespace}, where it is managed: its "
            f"ownerReferences, labels and annotations say by what (`{manager.tool}`, which you may "
            "not read)"
        )
    if manager.way is Way.GIT:
        values = _value_words(manager, of, change)
        return Fix(f"change it in git ({manager.source}): {values or change.words} in {of.words}")
    if manager.way is Way.VALUES:
        return _in_values(of, manager, change)
    return _in_owner(of, manager, change)


# In the values of a Helm release.


def _in_values(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    chart = charts.CHARTS.get(manager.chart)
    sets = charts.arguments(manager.chart, change.env, change.fields, change.tolerations, of.env)
    if change.values:
        sets = [f"--set {key}={shlex.quote(text)}" for key, text in change.values.items()]
    if chart is not None and chart.source and sets:
        parts = [shlex.quote(manager.name), *chart.source]
        version = ["--version", shlex.quote(manager.version)] if manager.version else []
        parts += version if "--repo" in chart.source else []
        parts += ["-n", shlex.quote(manager.namespace), "--reuse-values", *sets]
        return Fix(
            f"{change.words} in {of.words} by the values of {manager.source}",
            f"helm upgrade {' '.join(parts)}",
        )
    named = f" (chart {manager.chart})" if manager.chart else ""
    values = _value_words(manager, of, change) or change.words
    return Fix(
        f"change the values of {manager.source}{named} and run helm upgrade: {values} in {of.words}"
    )


def _value_words(manager: Manager, of: ChangedObject, change: ObjectChange) -> str:
    """Return the change in the terms of a known chart; empty if there are none."""
    said = charts.words(manager.chart, change.env, change.fields)
    return f"{said} in the values, which will {change.words}" if said else ""


# In the object that owns it.


def _in_owner(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    group = manager.api_version.rpartition("/")[0]
    owner = ChangedObject(manager.kind, manager.namespace, manager.name, of.above, group=group)
    at = _OPERANDS.get(of.name, "") if manager.kind == "ClusterPolicy" else ""
    if not manager.name:
        part = f"{at}.env" if change.env is not None and at else at or "spec"
        named = f"`kubectl get {owner.resource}` names it"
        return Fix(f"{change.words} in {part} of the {manager.kind} ({named})")
    if manager.kind == "ClusterPolicy":
        return _in_cluster_policy(of, owner, at, change)
    if manager.kind == "ScaledObject":
        return _in_scaled_object(owner, change)
    words = f"{change.words} for {of.words}, which it writes,"
    return lasting(owner, edit(owner, words))


_OPERANDS: Final = {
    "nvidia-dcgm-exporter": "spec.dcgmExporter",
    "nvidia-dcgm": "spec.dcgm",
    "nvidia-device-plugin-daemonset": "spec.devicePlugin",
    "gpu-feature-discovery": "spec.gfd",
    "nvidia-mig-manager": "spec.migManager",
    "nvidia-container-toolkit-daemonset": "spec.toolkit",
    "nvidia-driver-daemonset": "spec.driver",
    "nvidia-operator-validator": "spec.validator",
    "nvidia-node-status-exporter": "spec.nodeStatusExporter",
}
"""DaemonSet of the NVIDIA GPU Operator -> the part of a ClusterPolicy that describes it
(NVIDIA/gpu-operator ``assets/`` and ``api/nvidia/v1/clusterpolicy_types.go``)."""


def _in_cluster_policy(
    of: ChangedObject, owner: ChangedObject, at: str, change: ObjectChange
) -> Fix:
    """A list of a ClusterPolicy is written whole, so its present rows have to be known."""
    if change.env is not None and at:
        path, (name, value) = f"{at}.env", change.env
        row = {"name": name, "value": value}
        kept = [each for each in _rows(of.owner, path) if each.get("name") != name]
        rows = kept if value is None else [*kept, row]
    elif change.tolerations:
        path = "spec.daemonsets.tolerations"
        rows = [*_rows(of.owner, path), *change.tolerations]
    else:
        return lasting(owner, edit(owner, f"{change.words} in {at or 'spec'}"))
    words = f"{change.words} in {path}"
    if of.owner is None:
        return lasting(owner, edit(owner, words))
    if owner.manager is not None and owner.manager.way is Way.VALUES:
        # The chart writes the list only if the values have one; a ClusterPolicy that is patched
        # stays so until then.
        fix = lasting(
            owner._replace(manager=None), ObjectChange(words, _merge(owner, {path: rows}))
        )
        keep = f"keep {path.removeprefix('spec.')} in the values of {owner.manager.source} too"
        return Fix(f"{fix.text}; {keep}", f"{fix.command} # {keep}")
    return lasting(owner, ObjectChange(words, _merge(owner, {path: rows})))


def _rows(manifest: Mapping[str, Any] | None, path: str) -> list[Mapping[str, Any]]:
    at: Any = manifest or {}
    for key in path.split("."):
        at = (at.get(key) if isinstance(at, Mapping) else None) or {}
    return [row for row in at if isinstance(row, Mapping)] if isinstance(at, list) else []


_OF_SCALED: Final = {
    "spec.maxReplicas": "spec.maxReplicaCount",
    "spec.minReplicas": "spec.minReplicaCount",
}
"""Field of an HPA -> field of the ScaledObject from which KEDA writes it (keda
``apis/keda/v1alpha1/scaledobject_types.go``)."""
_BEHAVIOR: Final = "spec.behavior"


def _in_scaled_object(owner: ChangedObject, change: ObjectChange) -> Fix:
    fields = {}
    for path, value in (change.fields or {}).items():
        if path in _OF_SCALED:
            fields[_OF_SCALED[path]] = value
        elif path.startswith(_BEHAVIOR):
            fields[f"spec.advanced.horizontalPodAutoscalerConfig.{path[5:]}"] = value
    if fields and len(fields) == len(change.fields or {}):
        return lasting(owner, set_fields(owner, fields))
    return lasting(owner, edit(owner, f"{change.words} by spec.triggers"))


def _merge(of: ChangedObject, fields: Mapping[str, Any]) -> str:
    body: dict[str, Any] = {}
    for path, value in fields.items():
        at = body
        *parents, last = path.split(".")
        for key in parents:
            at = at.setdefault(key, {})
        at[last] = value
    return of.kubectl("patch", f"--type=merge -p {_json(body)}")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _json(value: Any) -> str:
    return shlex.quote(json.dumps(value, separators=(",", ":")))
