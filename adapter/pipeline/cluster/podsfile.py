"""Pods, Services, Nodes and HorizontalPodAutoscalers from a file of manifests, without a cluster.

The file is YAML or JSON: one or many documents, each a Pod, Service, Node, HPA, or a list of them
(``v1.List``, ``PodList``), as ``kubectl get pods -o yaml`` writes it. Other kinds are ignored. A
pod without a ``status`` counts as Running and Ready, so that plain manifests suffice. The file is
read again when it changes. A bad or empty new file leaves the objects as they are and is logged
once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import structlog

from adapter.pipeline.cluster import hpamanifest, nodes, services
from adapter.pipeline.cluster.hpamanifest import HpaManifest
from adapter.pipeline.cluster.hpas import Hpas, ShownHpa
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder, PodManifest
from adapter.pipeline.cluster.nodes import Node, NodeManifest, Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.services import Service, ServiceManifest, Services
from apiservice.runtime.filestamp import Changes
from apiservice.runtime.yamltext import YamlError, documents

log = structlog.get_logger(__name__)

_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class PodsFileError(Exception):
    """The file cannot be used; the text names it and the fix."""


@dataclass(slots=True)
class FileObjects:
    """The content of one file."""

    pods: list[Pod] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    hpas: list[ShownHpa] = field(default_factory=list)


def parse(data: bytes, decoder: PodDecoder, name: str = "pods file") -> FileObjects:
    """Parse a file's content.

    Raises:
        PodsFileError: it is neither YAML nor JSON, or an object does not match its kind.
    """
    try:
        manifests = list(_flatten_lists(documents(data)))
    except YamlError as error:
        raise PodsFileError(f"{name} is neither YAML nor JSON: {error}") from error
    if not manifests and not data.strip():
        raise PodsFileError(f"{name} is empty; write manifests, or [] for no objects")
    objects = FileObjects()
    for number, manifest in enumerate(manifests, 1):
        try:
            _add(objects, manifest, decoder)
        except (msgspec.ValidationError, ValueError, OverflowError) as error:
            what = _label(manifest, number)
            raise PodsFileError(
                f"{name}: {what}: {_one_line(error)}; correct that object"
            ) from error
    return objects


def _flatten_lists(manifests: list[Any]) -> Iterator[Any]:
    for document in manifests:
        if isinstance(document, list):
            yield from _flatten_lists(document)
        elif isinstance(document, dict) and isinstance(document.get("items"), list):
            kind = str(document.get("kind", "List")).removesuffix("List")
            for item in document["items"]:
                # The items of a PodList have no kind of their own.
                yield {"kind": kind, **item} if isinstance(item, dict) else item
        elif document is not None:
            yield document


def _add(objects: FileObjects, manifest: Any, decoder: PodDecoder) -> None:
    if not isinstance(manifest, dict):
        raise ValueError(f"a manifest is a mapping, not {type(manifest).__name__}")
    kind = manifest.get("kind")
    if kind == "Pod":
        if not manifest.get("status"):
            manifest = {**manifest, "status": _RUNNING}
        objects.pods.append(decoder.reduce(msgspec.convert(manifest, PodManifest)))
    elif kind == "Service":
        objects.services.append(services.reduce(msgspec.convert(manifest, ServiceManifest)))
    elif kind == "Node":
        objects.nodes.append(
            nodes.reduce(msgspec.convert(manifest, NodeManifest), decoder.resources)
        )
    elif kind == "HorizontalPodAutoscaler":
        objects.hpas.append(hpamanifest.reduce(msgspec.convert(manifest, HpaManifest)))
    elif not kind:
        raise ValueError("it has no kind; write kind: Pod")


def _label(manifest: Any, number: int) -> str:
    if not isinstance(manifest, dict):
        return f"object {number}"
    meta = manifest.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return f"object {number} ({manifest.get('kind')} {name})"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class PodsFile:
    """Keeps the collections equal to a file."""

    def __init__(
        self,
        path: Path,
        pods: PodIndex,
        decoder: PodDecoder,
        *,
        services: Services,
        nodes: Nodes,
        hpas: Hpas | None = None,
        poll: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._decoder = decoder
        self._pods, self._services, self._nodes, self._hpas = pods, services, nodes, hpas
        self._poll = poll
        self._clock = clock
        self._changes = Changes([path])
        self._checked = 0.0
        self.last_error = ""
        """Why the file is not in use, with the fix. Empty if it is in use."""
        self.rejected = 0
        """A file with an object that cannot be read is not used at all."""
        for collection in (pods, services, nodes):
            collection.fed_by(self)
        if hpas is not None:
            hpas.fed_by(self)

    def age(self, now: float) -> float:
        """Seconds since the file was last confirmed to be in use."""
        return max(0.0, now - self._checked) if self._checked else float("inf")

    async def load(self, *, at_once: bool = True) -> None:
        """Read the file if it has changed.

        Args:
            at_once: do not wait for the next call to confirm that the file is complete.

        Raises:
            PodsFileError: it is missing, unreadable or not valid; the objects read before stay in
                use.
        """
        # A bad file is not read again until it changes.
        if self._changes.take(at_once=at_once):
            try:
                self._put(await asyncio.to_thread(self._read))
            except PodsFileError as error:
                self.last_error = str(error)
                raise
            self.last_error = ""
        if not self.last_error:
            self._checked = self._clock()

    async def run(self) -> None:
        """Follow the file until cancelled. No failure ends it."""
        while True:
            try:
                await self.load(at_once=False)
            except PodsFileError as error:
                log.error("pods file rejected; the previous objects stay in use", error=str(error))
            await asyncio.sleep(self._poll)

    def _read(self) -> FileObjects:
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise PodsFileError(
                f"{self._path}: {error.strerror}; correct cluster.pods_file (--pods-file), or "
                "write the file"
            ) from error
        return parse(data, self._decoder, str(self._path))

    def _put(self, objects: FileObjects) -> None:
        self._pods.replace(objects.pods)
        self._services.replace(objects.services)
        self._nodes.replace(objects.nodes)
        if self._hpas is not None:
            self._hpas.replace(objects.hpas)
        log.info("pods file read", path=str(self._path), pods=len(objects.pods))
