"""Workloads with a pod template, with the fields that the tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from adapter.pipeline.cluster.objects import KubeObject, Meta, SeenConditions, decode, read
from adapter.pipeline.cluster.podobjects import TemplateSpec, shared_spec
from apiservice.wire import instant


class _Object(KubeObject, msgspec.Struct, frozen=True):
    """Names the base again: the linter sees no other module, and allows a Struct ``[]``."""


class _TemplateMeta(_Object, frozen=True):
    labels: dict[str, str] = {}


class Template(_Object, frozen=True):
    """A pod template."""

    metadata: _TemplateMeta = _TemplateMeta()
    spec: TemplateSpec = TemplateSpec()


class _Requirement(_Object, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class _JobSpec(_Object, frozen=True):
    template: Template = Template()


class _JobTemplate(_Object, frozen=True):
    spec: _JobSpec = _JobSpec()


class _CronJobSpec(_Object, frozen=True):
    schedule: str = ""
    suspend: bool = False
    job_template: _JobTemplate = _JobTemplate()


class SeenCronJob(_Object, frozen=True):
    """A CronJob."""

    metadata: Meta = Meta()
    spec: _CronJobSpec = _CronJobSpec()

    @property
    def words(self) -> list[str]:
        """The commands and arguments of its containers."""
        containers = self.spec.job_template.spec.template.spec.containers
        return [word for row in containers for word in (*row.command, *row.args)]


class LabelSelector(_Object, frozen=True):
    """``spec.selector``."""

    match_labels: dict[str, str] = {}
    match_expressions: list[_Requirement] = []


class _RollingUpdate(_Object, frozen=True):
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class _Strategy(_Object, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: _RollingUpdate = _RollingUpdate()


class _Partition(_Object, frozen=True):
    partition: int | str = 0


class _UpdateStrategy(_Object, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: _Partition = _Partition()


class _WorkloadSpec(_Object, frozen=True):
    replicas: int = 1
    paused: bool = False
    min_ready_seconds: int = 0
    selector: LabelSelector = LabelSelector()
    template: Template = Template()
    strategy: _Strategy = _Strategy()
    """Of a Deployment."""
    update_strategy: _UpdateStrategy = _UpdateStrategy()
    """Of a StatefulSet."""
    pod_management_policy: str = "OrderedReady"
    """Of a StatefulSet."""


class SpecWriter(NamedTuple):
    """Who wrote a part of the spec, by ``metadata.managedFields``."""

    manager: str
    time: float | None
    """Epoch seconds of its last write."""
    replicas: bool
    """It is the last that wrote ``spec.replicas``."""
    template: bool
    """It wrote fields of the pod template: it applies the object."""


class _WorkloadStatus(_Object, SeenConditions, frozen=True):
    replicas: int = 0
    updated_replicas: int = 0
    """Pods of the present template."""
    ready_replicas: int = 0
    available_replicas: int = 0
    update_revision: str = ""
    """Of a StatefulSet: the revision of its template."""


class SeenWorkload(_Object, frozen=True):
    """A Deployment, StatefulSet, ReplicaSet or another object with a pod template."""

    kind: str = ""
    metadata: Meta = Meta()
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()
    writers: tuple[SpecWriter, ...] = ()
    origin: str = ""
    """The file; empty for one of the cluster."""
    members: tuple[Template, ...] = ()
    """Templates of the other pods of a replica that is a group, such as the workers of a
    LeaderWorkerSet."""
    group_size: int | None = None
    """Pods of a replica, by a file; None if it does not state that."""
    sets_replicas: bool = False
    """Whether a file, or the manifest that was applied last, has ``spec.replicas``."""

    @property
    def subject(self) -> str:
        """How a finding names it."""
        where = f" in {self.origin}" if self.origin else ""
        return f"{self.kind.lower()} {self.key}{where}"

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def _sets_replicas(content: Any, notes: Mapping[str, str], origin: str) -> bool:
    """Return whether applying the manifest again sets the replicas."""
    if not origin:
        # Every object of a cluster has replicas: the manifest behind it is in this annotation.
        try:
            content = json.loads(notes.get(_APPLIED, "{}"))
        except ValueError:
            return False
    spec = content.get("spec") if isinstance(content, Mapping) else None
    return isinstance(spec, Mapping) and spec.get("replicas") is not None


class _ManagedMeta(_Object, frozen=True):
    managed_fields: list[dict[str, Any]] = []


class _Managed(_Object, frozen=True):
    metadata: _ManagedMeta = _ManagedMeta()


def read_workload(kind: str, content: Any, origin: str = "") -> SeenWorkload:
    """Read a workload of a kind, which the objects of a list do not state."""
    workload, managed = read(content, SeenWorkload), read(content, _Managed)
    return _complete_workload(workload, managed, kind, content, origin)


def decode_workload(kind: str, text: bytes | msgspec.Raw) -> SeenWorkload:
    """Read a workload of a cluster from its text: see :func:`read_workload`.

    Raises:
        msgspec.MsgspecError: it is not JSON, or a field has another type; the text names it.
    """
    return _complete_workload(decode(text, SeenWorkload), decode(text, _Managed), kind)


def _complete_workload(
    workload: SeenWorkload, managed: _Managed, kind: str, content: Any = None, origin: str = ""
) -> SeenWorkload:
    replaced, meta, spec = msgspec.structs.replace, workload.metadata, workload.spec
    applied = _sets_replicas(content, meta.annotations, origin)
    notes = {key: text for key, text in meta.annotations.items() if key != _APPLIED}
    return replaced(
        workload,
        kind=kind,
        metadata=replaced(meta, namespace=meta.namespace or "default", annotations=notes),
        spec=replaced(spec, template=replaced(spec.template, spec=shared_spec(spec.template.spec))),
        writers=tuple(filter(None, map(_writer, managed.metadata.managed_fields))),
        origin=origin,
        sets_replicas=applied,
    )


def _writer(row: Any) -> SpecWriter | None:
    fields = (row.get("fieldsV1") or {}).get("f:spec") or {}
    replicas, template = "f:replicas" in fields, "f:template" in fields
    if not replicas and not template:
        return None
    manager = str(row.get("manager") or "")
    return SpecWriter(manager, instant.read(row.get("time")), replicas, template)
