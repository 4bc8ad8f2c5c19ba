"""Facts from manifests in files, for checks in CI without a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from adapter.answers.keda.manifest import SeenScaledObject, read_scaledobject
from adapter.pipeline.cluster.manifest import MetaManifest
from adapter.pipeline.cluster.objects import (
    ConfigMap,
    ResourceQuota,
    SeenPriorityClass,
    SeenVolumeClaim,
    read,
)
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, read_workload
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor import release, rulesfile
from adapter.tools.doctor.facts import Fact, Facts, Hpa, UnreadError
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.rulesfile import SeenRules
from adapter.tools.doctor.scalers import read_hpa
from apiservice.runtime.yamltext import YamlError, documents

MOST_BYTES: Final = 16 << 20
"""Bytes of one file that are read."""
MOST_FILES: Final = 2000
_INPUT: Final = Path("-")
SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass
class Manifests:
    """The objects of some files that the checks know, by kind."""

    hpas: list[Hpa] = field(default_factory=list)
    scaledobjects: list[SeenScaledObject] = field(default_factory=list)
    workloads: list[SeenWorkload] = field(default_factory=list)
    group_sizes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    configmaps: list[ConfigMap] = field(default_factory=list)
    priorityclasses: list[SeenPriorityClass] = field(default_factory=list)
    volume_claims: list[SeenVolumeClaim] = field(default_factory=list)
    quotas: list[ResourceQuota] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Files and objects that were left out, one line each."""
    count: int = 0
    """Objects that were read."""
    foreign: int = 0
    """Objects of kinds that no check looks at."""

    def facts(self) -> Facts:
        """Return the facts that manifests can give."""
        facts = Facts(offline=True, now=time.time())
        facts.hpas = Fact(self.hpas)
        facts.scaledobjects = Fact(self.scaledobjects)
        facts.workloads = Fact(self.workloads)
        facts.group_sizes = Fact(self.group_sizes)
        facts.volume_claims = Fact(self.volume_claims)
        for attribute, name in (("release", release.SERVE), ("nodepool", release.NODEPOOL)):
            setattr(facts, attribute, Fact(self._release(name)))
        facts.rules = self._rules(facts.release.value)
        if self.priorityclasses:
            facts.priorityclasses = Fact(self.priorityclasses)
        if self.quotas:
            facts.quotas = Fact(self.quotas)
        return facts

    def _rules(self, own_release: Release | None) -> Fact[SeenRules | None]:
        place = rulesfile.find_mounted_rules(own_release) if own_release else None
        if place is None or own_release is None:
            return Fact(None)
        data = next((m.data for m in self.configmaps if m.metadata.name == place.configmap), None)
        if data is None:
            text = f"no ConfigMap {place.configmap} in the files"
            return Fact(unread=UnreadError(text, expected=True))
        return Fact(rulesfile.seen_rules(place, data, own_release))

    def _release(self, name: str) -> Any:
        workload = release.find(self.workloads, name)
        if workload is None:
            return None
        wanted = release.configmap_of(workload)
        data = next((m.data for m in self.configmaps if m.metadata.name == wanted), None)
        return release.release(workload, (), data, f"no ConfigMap {wanted} in the files")


def read_files(paths: Sequence[Path]) -> Manifests:
    """Read manifests from files and folders; ``-`` is standard input.

    Raises:
        ClientError: nothing could be read.
    """
    manifests = Manifests()
    files = list(_files(paths, manifests))
    for file in files[:MOST_FILES]:
        for obj in _documents(file, manifests):
            _add(manifests, obj, str(file))
    if len(files) > MOST_FILES:
        manifests.notes.append(f"only the first {MOST_FILES} of {len(files)} files were read")
    if manifests.count == 0:
        problem = manifests.notes[0] if manifests.notes else _describe_nothing(paths)
        raise ClientError(
            f"nothing to check: {problem}; name files with HPAs, Deployments, ScaledObjects, "
            "or the output of helm template"
        )
    return manifests


def _describe_nothing(paths: Sequence[Path]) -> str:
    return f"{', '.join(map(str, paths))}: no manifest of a kind that a check looks at"


def _files(paths: Sequence[Path], manifests: Manifests) -> Iterator[Path]:
    for path in paths:
        if path == _INPUT:
            yield path
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
            if not inside:
                manifests.notes.append(f"{path}: no {', '.join(SUFFIXES)} file in this folder")
            yield from inside
        elif path.is_file():
            yield path
        else:
            raise ClientError(f"{path}: no such file or folder")


def _content(file: Path) -> bytes:
    """Return a file's content: at most one byte more than is accepted."""
    if file == _INPUT:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)


def _documents(file: Path, manifests: Manifests) -> Iterator[dict[str, Any]]:
    try:
        content = _content(file)
        if len(content) > MOST_BYTES:
            manifests.notes.append(f"{file}: larger than {MOST_BYTES} bytes, left out")
            return
        every = documents(content)
    except OSError as error:
        manifests.notes.append(f"{file}: {error.strerror or error}")
        return
    except YamlError as error:
        manifests.notes.append(f"{file}: not YAML: {error}")
        return
    for document in every:
        rows = [document]
        if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
            rows = document.get("items") or []
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and row.get("kind"):
                yield row
            elif row is not None:
                manifests.notes.append(f"{file}: a document is not a Kubernetes object")


def _add(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    kind = str(obj["kind"])
    reader = _READERS.get(kind)
    if reader is None:
        manifests.foreign += 1
        return
    name = (obj.get("metadata") or {}).get("name") if isinstance(obj.get("metadata"), dict) else ""
    try:
        reader(manifests, obj, file)
        manifests.count += 1
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        manifests.notes.append(f"{file}: {kind} {name or 'without a name'}: {error}")


def _hpa(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    version = obj.get("apiVersion")
    if version != "autoscaling/v2":
        raise ValueError(f"apiVersion {version} is not checked: use autoscaling/v2")
    manifests.hpas.append(read_hpa(obj, file))


def _scaledobject(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    manifests.scaledobjects.append(read_scaledobject(obj, file))


def _workload(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    manifests.workloads.append(read_workload(obj["kind"], obj, file))


class _GroupTemplate(msgspec.Struct):
    size: int = 1
    """As the webhook of LeaderWorkerSet has it."""


class _GroupSpec(msgspec.Struct, rename="camel"):
    leader_worker_template: _GroupTemplate = msgspec.field(default_factory=_GroupTemplate)


class _LeaderWorkerSet(msgspec.Struct):
    metadata: MetaManifest
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)


def _leader_worker_set(manifests: Manifests, obj: dict[str, Any], file: str) -> None:
    lws = msgspec.convert(obj, _LeaderWorkerSet)
    key = ("LeaderWorkerSet", lws.metadata.namespace, lws.metadata.name)
    manifests.group_sizes[key] = lws.spec.leader_worker_template.size


_READERS: Final[dict[str, Callable[[Manifests, dict[str, Any], str], None]]] = {
    "HorizontalPodAutoscaler": _hpa,
    "ScaledObject": _scaledobject,
    "Deployment": _workload,
    "StatefulSet": _workload,
    "LeaderWorkerSet": _leader_worker_set,
    "ConfigMap": lambda manifests, obj, _: manifests.configmaps.append(read(obj, ConfigMap)),
    "PriorityClass": lambda manifests, obj, _: manifests.priorityclasses.append(
        read(obj, SeenPriorityClass)
    ),
    "PersistentVolumeClaim": lambda manifests, obj, _: manifests.volume_claims.append(
        read(obj, SeenVolumeClaim)
    ),
    "ResourceQuota": lambda manifests, obj, _: manifests.quotas.append(read(obj, ResourceQuota)),
}
