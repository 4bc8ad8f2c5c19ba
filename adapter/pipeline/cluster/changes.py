"""Changes of objects: in words, and as the command that makes them where nothing reverts them.

:mod:`adapter.pipeline.cluster.fixes` decides how a change is made so that it lasts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.pipeline.cluster.managers import Manager
from adapter.pipeline.cluster.workload import plural

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
        target = f"{self.resource} {shlex.quote(self.name)}"
        if slash:
            target = shlex.quote(f"{self.resource}/{self.name}")
        return f"kubectl{place} {verb} {target} {arguments}".rstrip()


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
    of_resources: bool = False
    """It changes requests or limits of containers only."""


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


_IN_LIST: Final = re.compile(r"\[|\.\d+(?:\.|$)")
"""A path through a list: ``spec.metrics[0].type``, or ``spec.metrics.1`` for an added row."""


def set_fields(of: ChangedObject, fields: Mapping[str, Any]) -> ObjectChange:
    """Return the change of fields; one of a list is changed by a JSON patch.

    Args:
        fields: path -> value: ``spec.maxReplicas``, ``spec.metrics[0].pods.metric.name``.
    """
    words = " and ".join(f"set {path} to {_value_text(value)}" for path, value in fields.items())
    if not any(_IN_LIST.search(path) for path in fields):
        return ObjectChange(words, merge(of, fields), fields=fields)
    rows = [{"op": "add", "path": pointer(path), "value": value} for path, value in fields.items()]
    return ObjectChange(words, patch(of, rows), fields=fields)


def annotate(of: ChangedObject, notes: Mapping[str, str | None]) -> ObjectChange:
    """Return the change of annotations of the pod template, where they outlive the pod; None
    removes one.
    """
    body = {"spec": {"template": {"metadata": {"annotations": dict(notes)}}}}
    command = of.kubectl("patch", f"--type=merge -p {_json(body)}", slash=True)
    rows = [f'{name}: "{value}"' for name, value in notes.items() if value is not None]
    gone = [name for name, value in notes.items() if value is None]
    parts = [f"set the annotation{'s' if len(rows) > 1 else ''} {', '.join(rows)}"] if rows else []
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
    path = "/spec/template/spec/tolerations"
    change: list[Mapping[str, Any]] = [
        {"op": "add", "path": f"{path}/-", "value": row} for row in rows
    ]
    if first:
        change = [{"op": "add", "path": path, "value": list(rows)}]
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


def merge(of: ChangedObject, fields: Mapping[str, Any]) -> str:
    """Return the command of a merge patch: path -> value, of fields that are in no list."""
    body: dict[str, Any] = {}
    for path, value in fields.items():
        part = body
        *parents, last = path.split(".")
        for key in parents:
            part = part.setdefault(key, {})
        part[last] = value
    return of.kubectl("patch", f"--type=merge -p {_json(body)}")


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _json(value: Any) -> str:
    return shlex.quote(json.dumps(value, separators=(",", ":")))
