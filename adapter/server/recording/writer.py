"""Write a recording: lines in blocks, appended to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from adapter import __version__
from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.recording import blocks
from adapter.server.recording.events import (
    Begun,
    Event,
    HpaSeen,
    Missed,
    NodeSeen,
    PageRead,
    PodSeen,
    RecordingError,
    Stretch,
)
from adapter.server.recording.layout import LayoutKey, Layouts, numbers_of, write_times, write_value
from adapter.server.recording.records import (
    MOST_PARTS,
    VERSION,
    AnyRecord,
    BegunRecord,
    HpaRecord,
    LabelsRecord,
    LayoutRecord,
    MissedRecord,
    NodeRecord,
    PageRecord,
    PodRecord,
    encoder,
)

_LABEL_SETS: Final = 1 << 18
"""Label sets that have a number. Beyond it, all numbers begin again."""


class RecordingFile:
    """Appends blocks to a file, up to a limit.

    Raises:
        RecordingError: at construction, if the file cannot be written.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self.most = most
        try:
            path.touch(mode=0o600)
            with path.open("ab"):
                self.size = path.stat().st_size
        except OSError as error:
            raise RecordingError(
                f"{path} cannot be written: {error.strerror}; name another file"
            ) from None

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.size >= self.most

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines in blocks of whole lines; raises OSError."""
        with self.path.open("ab") as file:
            for text in _texts(lines):
                self.size += file.write(blocks.pack(text))


def _texts(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the texts of blocks; no line is longer than a block."""
    some: list[bytes] = []
    size = 0
    for line in lines:
        if some and size + len(line) > blocks.WRITTEN:
            yield b"".join(some)
            some, size = [], 0
        some.append(line)
        size += len(line)
    if some:
        yield b"".join(some)


class RecordingWriter:
    """Turns events into lines. Not thread-safe."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self.pending = 0
        """Bytes of the lines that are not taken yet."""
        self.left_out = 0
        """Events that are longer than a block, or have too many parts."""
        self._layouts = Layouts()
        self._sets: dict[frozenset[tuple[str, str]], int] = {}

    def begin(self, settings: Mapping[str, Any], now: float) -> None:
        """Begin a run: numbers and the state of the cluster begin again."""
        self._layouts = Layouts()
        self._sets = {}
        program = f"gpu-metrics-adapter {__version__}"
        self._add(BegunRecord(VERSION, now, program, dict(settings)))

    def page(self, result: ScrapeResult) -> None:
        """Record the samples of one exporter."""
        number, layout = self._layouts.number(result)
        if layout is not None:
            self._define(number, layout)
        values, times = numbers_of(result.samples)
        self._add(
            PageRecord(
                number,
                result.received,
                list(map(write_value, values)),
                write_times(times, result.received),
                dict(result.rejects),
            )
        )

    def pod(self, pod: Pod, now: float, *, gone: bool = False) -> None:
        """Record a pod that was added, changed or deleted."""
        self._add(PodRecord(now, pod.fields(), gone))

    def node(self, node: Node, now: float, *, gone: bool = False) -> None:
        """Record a node that was added, changed or deleted."""
        self._add(NodeRecord(now, node, gone))

    def hpa(
        self, hpa: ShownHpa, now: float, *, gone: bool = False, until: float | None = None
    ) -> None:
        """Record an HPA that was added, changed or deleted."""
        self._add(HpaRecord(now, hpa, gone, until))

    def missed_stretch(self, stretch: Stretch, now: float) -> None:
        """Record that something is missing."""
        self._add(MissedRecord(now, stretch))

    def event(self, event: Event) -> None:
        """Record an event of another recording."""
        match event:
            case Begun():
                self.begin(event.settings, event.time)
            case PageRead():
                self.page(event.result)
            case PodSeen():
                self.pod(event.pod, event.time, gone=event.gone)
            case NodeSeen():
                self.node(event.node, event.time, gone=event.gone)
            case HpaSeen():
                self.hpa(event.hpa, event.time, gone=event.gone, until=event.until)
            case Missed():
                self.missed_stretch(event.stretch, event.time)

    def take(self) -> list[bytes]:
        """Return the lines that were written since the last call."""
        lines, self._lines, self.pending = self._lines, [], 0
        return lines

    def _define(self, number: int, layout: LayoutKey) -> None:
        self._add(
            LayoutRecord(
                number,
                layout.origin,
                [name for name, _ in layout.series],
                [self._set(labels) for _, labels in layout.series],
                layout.node,
                layout.pod,
                layout.serves,
            )
        )

    def _set(self, labels: Mapping[str, str]) -> int:
        key = frozenset(labels.items())
        number = self._sets.get(key)
        if number is None:
            if len(self._sets) >= _LABEL_SETS:
                self._sets.clear()
            # A number may mean another set later: a reader takes the last line with it.
            number = self._sets[key] = len(self._sets)
            self._add(LabelsRecord(number, dict(labels)))
        return number

    def _add(self, line: AnyRecord) -> None:
        text = encoder.encode(line) + b"\n"
        if len(text) > blocks.WRITTEN or text.count(b",") > MOST_PARTS:
            self.left_out += 1
            return
        self._lines.append(text)
        self.pending += len(text)
