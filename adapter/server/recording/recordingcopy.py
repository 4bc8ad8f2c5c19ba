"""Write what is read from a recording into a file, while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.server.recording.events import Event, Losses, Recording, RecordingError
from adapter.server.recording.writer import RecordingFile, RecordingWriter

_BLOCK: Final = 4 << 20
"""Bytes of lines that make a block."""


class CopiedRecording:
    """Implements :class:`adapter.server.recording.events.Recording`; the first reading writes the
    file."""

    def __init__(self, recording: Recording, file: RecordingFile) -> None:
        self._recording = recording
        self._file = file
        self._written = False

    @property
    def losses(self) -> Losses:
        """See the port."""
        return self._recording.losses

    def events(self) -> Iterator[Event]:
        """See the port; also raises RecordingError if the file cannot be written."""
        if self._written:
            yield from self._recording.events()
            return
        self._written = True
        writer = RecordingWriter()
        for event in self._recording.events():
            writer.event(event)
            if writer.pending > _BLOCK:
                self._append(writer)
            yield event
        self._append(writer)

    def _append(self, writer: RecordingWriter) -> None:
        try:
            self._file.append(writer.take())
        except OSError as error:
            raise RecordingError(f"{self._file.path} cannot be written: {error.strerror}") from None
        if self._file.full:
            raise RecordingError(
                f"{self._file.path} has reached its limit of {self._file.most} bytes: give a "
                "shorter --since"
            )
