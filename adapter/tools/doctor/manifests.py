"""Facts from manifests in files, for checks in CI without a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from adapter.answers.keda.manifest import SeenScaledObject, read_scaledobject
from adapter.figures import count
from adapter.pipeline.cluster.fieldtypes import type_faults
from adapter.pipeline.cluster.objects import (
    ConfigMap,
    KubeObject,
    Meta,
    ResourceQuota,
    SeenCondition,
    SeenPriorityClass,
    SeenVolumeClaim,
    read,
)
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, Template, read_workload
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor import release, rulesfile
from adapter.tools.doctor.copies import nearest_copies
from adapter.tools.doctor.facts import Fact, Facts, Hpa, UnreadError
from adapter.tools.doctor.manifestfiles import FileObject, ObjectFiles
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.rulesfile import SeenRules
from adapter.tools.doctor.scalers import from_v1, read_hpa


@dataclass
class Manifests:
    """The objects of some files that the checks know, by kind."""

    hpas: list[Hpa] = field(default_factory=list)
    scaledobjects: list[SeenScaledObject] = field(default_factory=list)
    workloads: list[SeenWorkload] = field(default_factory=list)
    referring: list[tuple[SeenWorkload, str]] = field(default_factory=list)
    """Rollouts without a pod template, each with the name of the Deployment that has it."""
    configmaps: list[ConfigMap] = field(default_factory=list)
    priorityclasses: list[SeenPriorityClass] = field(default_factory=list)
    volume_claims: list[SeenVolumeClaim] = field(default_factory=list)
    quotas: list[ResourceQuota] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Files that are not manifests, one line each."""
    unread: list[str] = field(default_factory=list)
    """Files and objects that no check could look at, one line each."""
    count: int = 0
    """Objects that were read."""
    foreign: int = 0
    """Objects of kinds that no check looks at."""

    def facts(self) -> Facts:
        """Return the facts that manifests can give."""
        facts = Facts(offline=True, now=time.time())
        facts.hpas = Fact(self.hpas)
        facts.scaledobjects = Fact(self.scaledobjects)
        facts.workloads = Fact([*self.workloads, *self._referring_workloads()])
        facts.volume_claims = Fact(self.volume_claims)
        for attribute, name in (("release", release.SERVE), ("nodepool", release.NODEPOOL)):
            setattr(facts, attribute, Fact(self._release(name)))
        facts.rules = self._rules(facts.release.value)
        if self.priorityclasses:
            facts.priorityclasses = Fact(self.priorityclasses)
        if self.quotas:
            facts.quotas = Fact(self.quotas)
        return facts

    def _referring_workloads(self) -> Iterator[SeenWorkload]:
        """Yield the Rollouts with the pod templates of their Deployments, as far as these were
        read."""
        for rollout, name in self.referring:
            key = ("Deployment", f"{rollout.metadata.namespace}/{name}")
            copies = [row for row in self.workloads if (row.kind, row.key) == key]
            for deployment in nearest_copies(rollout.origin, copies)[:1]:
                spec = msgspec.structs.replace(rollout.spec, template=deployment.spec.template)
                yield msgspec.structs.replace(rollout, spec=spec)

    def _rules(self, own_release: Release | None) -> Fact[SeenRules | None]:
        place = rulesfile.find_mounted_rules(own_release) if own_release else None
        if place is None or own_release is None:
            return Fact(None)
        data = self._configmap_data(place.configmap, own_release.workload)
        if data is None:
            text = f"no ConfigMap {place.configmap} in the files"
            return Fact(unread=UnreadError(text, expected=True))
        return Fact(rulesfile.seen_rules(place, data, own_release))

    def _release(self, name: str) -> Any:
        workload = release.find(self.workloads, name)
        if workload is None:
            return None
        wanted = release.configmap_of(workload)
        data = self._configmap_data(wanted, workload)
        return release.release(workload, (), data, f"no ConfigMap {wanted} in the files")

    def _configmap_data(self, name: str, workload: SeenWorkload) -> Mapping[str, str] | None:
        """Return the data of a ConfigMap that a workload names; None if no file has it."""
        copies = [row for row in self.configmaps if row.metadata.name == name]
        return next((row.data for row in nearest_copies(workload.origin, copies)), None)


def read_files(paths: Sequence[Path]) -> Manifests:
    """Read manifests from files and folders; ``-`` is standard input.

    Raises:
        ClientError: nothing could be read.
    """
    manifests, files = Manifests(), ObjectFiles(paths)
    for file_object in files.objects():
        _add(manifests, files, file_object)
    manifests.notes, manifests.unread = files.notes, files.unread
    if manifests.count == 0:
        raise ClientError(f"nothing to check: {files.describe_nothing()}")
    return manifests


class _Headed(KubeObject, frozen=True):
    metadata: Meta = Meta()


def _add(manifests: Manifests, files: ObjectFiles, file_object: FileObject) -> None:
    obj, file = file_object
    kind, version = str(obj["kind"]), obj.get("apiVersion")
    known_kind = _KINDS.get(kind)
    if known_kind is None or _is_of_another_api(version, known_kind.versions[0]):
        manifests.foreign += 1
        return
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    try:
        _check_version(version, known_kind.versions)
        _check_types(obj, _Headed)
        if not name and not (meta or {}).get("generateName"):
            raise ValueError("metadata.name is missing: add it")
        _check_lengths(meta or {})
        known_kind.add(manifests, obj, file)
        manifests.count += 1
    except (ValueError, RecursionError) as error:
        shown = str(name or "without a name")[: _LONGEST["name"]]
        files.unread.append(f"{file}: {kind} {shown}: {error}")


_LONGEST: Final = {"name": 253, "generateName": 253, "namespace": 63}
"""Letters of a text of ``metadata`` that the API server accepts."""


def _check_lengths(meta: Mapping[str, Any]) -> None:
    """Raise ValueError for a name with which the API server refuses the object."""
    for key, most in _LONGEST.items():
        if (letters := len(str(meta.get(key) or ""))) > most:
            raise ValueError(f"metadata.{key} has {letters} letters: use at most {most}")


def _is_of_another_api(version: Any, known: str) -> bool:
    """Return whether a kind is another one with the same name: of another group. The groups of
    Kubernetes itself, in which a kind may have had other names, mostly have no dot."""
    group = str(version or "").rpartition("/")[0]
    return "." in group and group != known.rpartition("/")[0]


_REMOVED: Final = {"autoscaling/v2beta1": "1.25", "autoscaling/v2beta2": "1.26"}
"""Versions -> the Kubernetes that has removed them (kubernetes.io, "Deprecated API Migration
Guide")."""


def _check_version(version: Any, known: Sequence[str]) -> None:
    """Raise ValueError for a version of a kind that is not read."""
    if version in known:
        return
    if not version:
        raise ValueError(f"apiVersion is missing: write {known[0]}")
    removed = _REMOVED.get(str(version))
    why = f"was removed in Kubernetes {removed}" if removed else "is not checked"
    raise ValueError(f"apiVersion {str(version)[:63]} {why}: use {known[0]}")


def _check_types(obj: dict[str, Any], kind: type[Any]) -> None:
    """Raise ValueError if fields have a type with which the API server refuses the object."""
    faults = type_faults(obj, kind)
    if len(faults) > _SHOWN:
        raise ValueError(f"{faults[0]}; so do {count(len(faults) - 1, 'more field')}")
    if faults:
        raise ValueError("; ".join(map(str, faults)))


_SHOWN: Final = 3
"""Wrong fields of one object that are named."""


class _HpaStatus(KubeObject, msgspec.Struct, frozen=True):
    conditions: list[SeenCondition] = []
    current_metrics: list[dict[str, Any]] = []


class _HpaFields(KubeObject, msgspec.Struct, frozen=True):
    """The fields of an HPA that GMA409 does not judge."""

    spec: dict[str, Any] = {}
    status: _HpaStatus = _HpaStatus()


def _hpa(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    _check_types(obj, _HpaFields)
    v1 = obj["apiVersion"] == "autoscaling/v1"
    manifests.hpas.append(read_hpa(from_v1(obj) if v1 else obj, file))


def _scaledobject(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    manifests.scaledobjects.append(read_scaledobject(obj, file))


def _workload(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    _check_types(obj, SeenWorkload)
    manifests.workloads.append(read_workload(obj["kind"], obj, file))


class _WorkloadReference(KubeObject, frozen=True):
    name: str = ""


class _RolloutSpec(KubeObject, frozen=True):
    workload_ref: _WorkloadReference | None = None


class _Rollout(KubeObject, frozen=True):
    spec: _RolloutSpec = _RolloutSpec()


def _rollout(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    """Add a Rollout of Argo, whose pod template is its own, or that of ``workloadRef``."""
    _check_types(obj, _Rollout)
    reference = read(obj, _Rollout).spec.workload_ref
    if reference is None:
        _workload(manifests, obj, file)
    else:
        _check_types(obj, SeenWorkload)
        manifests.referring.append((read_workload("Rollout", obj, file), reference.name))


class _GroupTemplate(KubeObject, frozen=True):
    size: int = 1
    """As the webhook of LeaderWorkerSet has it."""
    leader_template: Template | None = None
    worker_template: Template = Template()


class _GroupSpec(KubeObject, frozen=True):
    replicas: int = 1
    leader_worker_template: _GroupTemplate = _GroupTemplate()


class _LeaderWorkerSet(KubeObject, frozen=True):
    metadata: Meta = Meta()
    spec: _GroupSpec = _GroupSpec()


def _leader_worker_set(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    """Add a LeaderWorkerSet. Its leader has the template of the workers unless it has its own."""
    _check_types(obj, _LeaderWorkerSet)
    spec = read(obj, _LeaderWorkerSet).spec
    group = spec.leader_worker_template
    workload = read_workload("LeaderWorkerSet", obj, file)
    leader = group.leader_template or group.worker_template
    manifests.workloads.append(
        msgspec.structs.replace(
            workload,
            spec=msgspec.structs.replace(workload.spec, template=leader),
            members=(group.worker_template,),
            group_size=group.size,
        )
    )


T = TypeVar("T")


def _kept(
    kind: type[T], keep: Callable[[Manifests], list[T]]
) -> Callable[[Manifests, dict[str, Any], str], None]:
    """Return a function that reads an object of a kind into a list."""

    def add(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
        _check_types(obj, kind)
        keep(manifests).append(read({**obj, "origin": file}, kind))

    return add


class _Kind(NamedTuple):
    """A kind of objects that checks look at."""

    add: Callable[[Manifests, dict[str, Any], str], None]
    """Adds an object of a file; raises ValueError."""
    versions: tuple[str, ...]
    """Each ``apiVersion`` that is read, the best first."""


_KINDS: Final = {
    "HorizontalPodAutoscaler": _Kind(_hpa, ("autoscaling/v2", "autoscaling/v1")),
    "ScaledObject": _Kind(_scaledobject, ("keda.sh/v1alpha1",)),
    "Deployment": _Kind(_workload, ("apps/v1",)),
    "StatefulSet": _Kind(_workload, ("apps/v1",)),
    "Rollout": _Kind(_rollout, ("argoproj.io/v1alpha1",)),
    "LeaderWorkerSet": _Kind(_leader_worker_set, ("leaderworkerset.x-k8s.io/v1",)),
    "ConfigMap": _Kind(_kept(ConfigMap, lambda kept: kept.configmaps), ("v1",)),
    "PriorityClass": _Kind(
        _kept(SeenPriorityClass, lambda kept: kept.priorityclasses), ("scheduling.k8s.io/v1",)
    ),
    "PersistentVolumeClaim": _Kind(
        _kept(SeenVolumeClaim, lambda kept: kept.volume_claims), ("v1",)
    ),
    "ResourceQuota": _Kind(_kept(ResourceQuota, lambda kept: kept.quotas), ("v1",)),
}
