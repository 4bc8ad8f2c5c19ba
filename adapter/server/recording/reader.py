"""Read a recording, in bounded memory, with what could not be read counted by reason."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import BinaryIO, Final

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.server.recording.blocks import texts
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
from adapter.server.recording.layout import ORIGINS, LayoutKey, read_samples
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
    ObjectRecord,
    PageRecord,
    PodRecord,
    decoder,
)
from apiservice.runtime.bytecache import ByteCache, weight
from apiservice.runtime.jsontext import UNREADABLE

DAMAGED: Final = "damaged"
"""Reason of a stretch of time whose lines cannot be read."""
MOST_SERIES: Final = 1 << 20
"""Series of all layouts that are kept; a series takes 150 bytes."""
LABEL_BYTES: Final = 384 << 20
"""Bytes of the label sets that are kept."""
OBJECT_BYTES: Final = 64 << 20
"""Bytes of the lines of all pods, nodes and HPAs that exist at one time; in memory they take five
times as many."""


class RecordingReader:
    """Implements :class:`adapter.server.recording.events.Recording` for a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses = Losses()

    def events(self) -> Iterator[Event]:
        """See the port."""
        self.losses = Losses()
        try:
            with self.path.open("rb") as file:
                yield from _mark_gaps(self._events(file))
        except OSError as error:
            raise RecordingError(f"{self.path} cannot be read: {error.strerror}") from None

    def _events(self, file: BinaryIO) -> Iterator[Event | None]:
        """Yield the events, and None for something that cannot be read."""
        state: _Run | None = None
        for number, text in enumerate(_lines(file, self.losses)):
            if text is None:
                yield None
                continue
            line = self._decode_line(text)
            if line is None:
                if number == 0:
                    raise self._foreign_error()
                yield None
                continue
            if isinstance(line, BegunRecord):
                if line.version != VERSION:
                    raise RecordingError(
                        f"{self.path} has version {line.version} of the format, and this program "
                        f"reads {VERSION}: use the version that wrote it, {line.program}"
                    )
                state = _Run()
                yield Begun(line.time, line.settings)
            elif state is None:
                raise self._foreign_error()
            else:
                if isinstance(line, ObjectRecord):
                    state.keep(line, len(text), self.path)
                yield from state.take(line, self.losses)
        if state is None:
            raise self._foreign_error() if self.losses.damaged else self._empty_error()

    def _decode_line(self, text: bytes) -> AnyRecord | None:
        """Return a line; None, and count it, if it cannot be read."""
        try:
            if text.count(b",") <= MOST_PARTS:
                line: AnyRecord = decoder.decode(text)
                return line
        except UNREADABLE:
            self.losses.count("malformed")
        else:
            self.losses.count("too_many_parts")
        return None

    def _empty_error(self) -> RecordingError:
        return RecordingError(f"{self.path} is empty: nothing was recorded")

    def _foreign_error(self) -> RecordingError:
        return RecordingError(
            f"{self.path} is not a recording: give a file that `replay record` or "
            "`serve --record` wrote"
        )


class _Run:
    """What the lines of one recorder refer to."""

    def __init__(self) -> None:
        self._sets: ByteCache[int, Mapping[str, str]] = ByteCache(LABEL_BYTES, first_in=True)
        self._layouts: OrderedDict[int, LayoutKey] = OrderedDict()
        self._last_of: dict[str, int] = {}
        self._series = 0
        """Of all layouts."""
        self._objects: dict[tuple[type[ObjectRecord], str], int] = {}
        """What identifies a pod, node or HPA -> bytes of its last line."""
        self._bytes = 0
        """Of these lines."""

    def keep(self, line: ObjectRecord, size: int, path: Path) -> None:
        """Count the line of an object; raises RecordingError if all of them are too large."""
        key = type(line), line.key
        self._bytes -= self._objects.pop(key, 0)
        if not line.gone:
            self._objects[key] = size
            self._bytes += size
        if self._bytes > OBJECT_BYTES:
            raise RecordingError(
                f"{path} has pods, nodes and HPAs of more than {OBJECT_BYTES >> 20} MiB at one "
                "time: record fewer namespaces"
            )

    def take(self, line: AnyRecord, losses: Losses) -> Iterator[Event | None]:
        """Yield the event of a line; None if it cannot be read.

        Lines that only define something have none.
        """
        match line:
            case LabelsRecord():
                self._sets.put(line.id, line.labels, weight(line.labels))
            case LayoutRecord():
                self._define(line, losses)
            case PageRecord():
                yield from self._page(line, losses)
            case PodRecord():
                yield PodSeen(line.time, Pod.of(line.pod), line.gone)
            case NodeRecord():
                yield NodeSeen(line.time, line.node, line.gone)
            case HpaRecord():
                yield HpaSeen(line.time, line.hpa, line.gone, line.until)
            case MissedRecord():
                yield Missed(line.time, line.stretch)

    def _define(self, line: LayoutRecord, losses: Losses) -> None:
        try:
            series = tuple(
                (intern(name), self._sets[labels])
                for name, labels in zip(line.names, line.labels, strict=True)
            )
        except (KeyError, ValueError):
            losses.count("undefined_labels")
            return
        for earlier in {self._last_of.get(line.origin, line.id), line.id}:
            self._forget(earlier)
        self._last_of[line.origin] = line.id
        self._layouts[line.id] = LayoutKey(line.origin, line.node, line.pod, line.serves, series)
        self._series += len(series)
        while len(self._layouts) > ORIGINS or self._series > MOST_SERIES:
            self._forget(next(iter(self._layouts)))

    def _forget(self, number: int) -> None:
        """Forget a layout, if it is known."""
        layout = self._layouts.pop(number, None)
        if layout is not None:
            self._series -= len(layout.series)
            self._last_of.pop(layout.origin, None)

    def _page(self, line: PageRecord, losses: Losses) -> Iterator[Event | None]:
        layout = self._layouts.get(line.layout)
        if layout is None:
            losses.count("undefined_layout")
            yield None
            return
        try:
            samples = read_samples(layout, line.values, line.at, line.time)
        except ValueError:
            losses.count("malformed")
            yield None
            return
        yield PageRead(
            line.time,
            ScrapeResult(
                layout.origin,
                layout.node,
                samples,
                line.time,
                line.rejects,
                layout.pod,
                layout.serves,
            ),
        )


def _mark_gaps(events: Iterator[Event | None]) -> Iterator[Event]:
    """Yield the events, and the time between those on both sides of what cannot be read."""
    last: float | None = None
    damaged = False
    for event in events:
        if event is None:
            damaged = True
            continue
        if damaged:
            start = event.time if last is None else last
            yield Missed(event.time, Stretch(start, event.time, DAMAGED, ""))
            damaged = False
        last = event.time
        yield event
    if damaged and last is not None:
        yield Missed(last, Stretch(last, last, DAMAGED, ""))


def _lines(file: BinaryIO, losses: Losses) -> Iterator[bytes | None]:
    """Yield the lines of all blocks, and None for a stretch that cannot be read."""
    for text in texts(file):
        if text is None:
            losses.damaged += 1
            yield None
        else:
            yield from io.BytesIO(text)
