"""A folder of saved pages as a recording: one folder for each moment.

``2026-09-21T14:00:00Z/objects.json`` has the pods and HPAs as kubectl prints them, and every
``2026-09-21T14:00:00Z/NODE.prom`` is the page of the exporter on that node.
``2026-09-21T14:00:00Z/NAMESPACE/POD.prom`` is the page of the inference server in that pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.cluster.podsfile import FileObjects, PodsFileError, parse
from adapter.pipeline.exposition import page as exposition
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.recording.events import (
    Begun,
    Event,
    HpaSeen,
    Losses,
    Missed,
    NodeSeen,
    PageRead,
    PodSeen,
    RecordingError,
    Stretch,
)

OBJECTS: Final = "objects.json"
_PAGES: Final = "*.prom"
_MOST_BYTES: Final = 256 << 20
"""Bytes of one file."""
_MOST_MOMENTS: Final = 1 << 20
_GAP: Final = 4
"""Usual distances of two moments beyond which nothing is known in between."""
_LEAST_GAP: Final = 120.0
_FIX: Final = "name each folder by its time in UTC, such as 2026-09-21T14:00:00Z"


class _Moment(NamedTuple):
    time: float
    folder: Path


class SavedPages:
    """Implements :class:`adapter.server.recording.events.Recording`.

    Args:
        folder: of the moments.
        settings: from the distance of two moments in seconds, the settings that values depend on.
        catalog: which series to read.
        decoder: of pods.
    """

    def __init__(
        self,
        folder: Path,
        settings: Callable[[float], Mapping[str, Any]],
        catalog: Catalog,
        decoder: PodDecoder,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._series = catalog.series.union(*catalog.on_demand.values())
        self._decoder = decoder
        self.losses = Losses()
        self._pages = 0
        self._unread = ""
        """Why the first page that could not be read could not."""

    def events(self) -> Iterator[Event]:
        """See the port."""
        self.losses = Losses()
        self._pages, self._unread = 0, ""
        moments = self._moments()
        usual = median(after.time - before.time for before, after in pairwise(moments))
        patience = max(_LEAST_GAP, _GAP * usual)
        state: _State | None = None
        before = moments[0].time
        for time, folder in moments:
            objects = self._objects(folder / OBJECTS)
            if isinstance(objects, str):
                self.losses.count("unreadable_objects")
                yield Missed(time, Stretch(before, time, "damaged", objects))
                before = time
                continue
            if state is None or time - state.time > patience:
                yield Begun(time, self._settings(usual))
                state = _State(time)
            yield from state.take(objects, time)
            for page in sorted(folder.glob(_PAGES)):
                yield from self._page(page, time, page.stem)
            for page in sorted(folder.glob(f"*/{_PAGES}")):
                yield from self._page(page, time, None)
            before = time
        self._complain(state)

    def _complain(self, state: _State | None) -> None:
        """Raise RecordingError if nothing can be replayed."""
        if state is None:
            raise RecordingError(
                f"{self._folder}: no folder has an {OBJECTS} that can be read; write it with "
                "`kubectl get pods,hpa,nodes -A -o json`"
            )
        if not self._pages:
            first = f"; {self._unread}" if self._unread else ""
            raise RecordingError(
                f"{self._folder}: no folder has the page of an exporter{first}: write one as "
                "NODE.prom for each node, or that of an inference server as NAMESPACE/POD.prom"
            )

    def _moments(self) -> list[_Moment]:
        try:
            folders = sorted(folder for folder in self._folder.iterdir() if folder.is_dir())
        except OSError as error:
            raise RecordingError(f"{self._folder} cannot be read: {error.strerror}") from None
        if not 2 <= len(folders) <= _MOST_MOMENTS:
            raise RecordingError(
                f"{self._folder} has {len(folders)} folders of moments, and a replay needs 2 to "
                f"{_MOST_MOMENTS}: {_FIX}"
            )
        return sorted(_Moment(_time(folder), folder) for folder in folders)

    def _objects(self, path: Path) -> FileObjects | str:
        """Return the objects, or why they cannot be read."""
        try:
            return parse(_content(path), self._decoder, str(path))
        except (OSError, PodsFileError) as error:
            text = str(error) if isinstance(error, PodsFileError) else f"{path}: {error.strerror}"
            return text[:300]

    def _page(self, path: Path, time: float, node: str | None) -> Iterator[Event]:
        """Yield what a file says: of the exporter on a node, or of a pod's server without one."""
        try:
            content = _content(path)
        except OSError as error:
            yield self._note_unreadable(path, time, error.strerror or "")
            return
        read = exposition.parse(content, time=time, wanted=self._series)
        if not read.samples:
            yield self._note_unreadable(path, time, "it has no sample of a known series")
            return
        self._pages += 1
        origin, pod = path.name, None
        if node is None:
            pod = (path.parent.name, path.stem)
            origin = "/".join(pod)
        result = ScrapeResult(
            *(origin, node, read.samples, time, read.rejects),
            pod=pod,
            serves=pod is not None,
            incomplete=read.incomplete,
            sought=self._series if read.whole else None,
        )
        yield PageRead(time, result)

    def _note_unreadable(self, path: Path, time: float, why: str) -> Missed:
        self.losses.count("unreadable_page")
        text = f"{path}: {why}"
        self._unread = self._unread or text
        return Missed(time, Stretch(time, time, "damaged", text))


class _State:
    """The objects of the last moment."""

    def __init__(self, time: float) -> None:
        self.time = time
        self._pods: dict[PodRef, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._hpas: dict[tuple[str, str], ShownHpa] = {}

    def take(self, objects: FileObjects, time: float) -> Iterator[Event]:
        """Yield what has changed until this moment."""
        before, self.time = self.time, time
        # First, because they may have been written before the rest.
        for hpa in objects.hpas:
            if self._hpas.get(hpa.key) not in (None, hpa):
                yield HpaSeen(before, hpa, until=time)
        yield from self._changed_pods(objects.pods, before, time)
        for node in objects.nodes:
            if self._nodes.get(node.name) != node:
                yield NodeSeen(time, node)
        for name in sorted(self._nodes.keys() - {node.name for node in objects.nodes}):
            yield NodeSeen(time, self._nodes[name], gone=True)
        for hpa in objects.hpas:
            if hpa.key not in self._hpas:
                yield HpaSeen(time, hpa)
        for key in sorted(self._hpas.keys() - {hpa.key for hpa in objects.hpas}):
            yield HpaSeen(time, self._hpas[key], gone=True)
        self._pods = {pod.ref: pod for pod in objects.pods}
        self._nodes = {node.name: node for node in objects.nodes}
        self._hpas = {hpa.key: hpa for hpa in objects.hpas}

    def _changed_pods(self, pods: Sequence[Pod], before: float, time: float) -> Iterator[Event]:
        born = [pod for pod in pods if pod.ref not in self._pods and before < pod.born <= time]
        for pod in sorted(born, key=lambda pod: pod.born):
            # Each pod begins as Pending, so its state at its creation is known.
            yield PodSeen(pod.born, pod.replace(phase="Pending", ready=False, node="", ip=""))
        for pod in pods:
            if self._pods.get(pod.ref) != pod:
                yield PodSeen(time, pod)
        for ref in sorted(self._pods.keys() - {pod.ref for pod in pods}):
            yield PodSeen(time, self._pods[ref], gone=True)


def _content(path: Path) -> bytes:
    """Return a file's content; raises OSError."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(0, f"it is longer than {_MOST_BYTES >> 20} MiB")
    return content


def _time(folder: Path) -> float:
    try:
        moment = datetime.fromisoformat(folder.name)
    except ValueError:
        raise RecordingError(f"{folder} is not a time: {_FIX}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
