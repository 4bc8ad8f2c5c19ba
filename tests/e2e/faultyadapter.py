"""An adapter with a failing environment: its clock, its disk, or the reader of its log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e import programs
from tests.e2e.adapterprocess import Adapter
from tests.e2e.process import Process


class FaultyAdapter(Adapter):
    """See :class:`Adapter`.

    Args:
        prefix: a command that runs the command of the adapter.
        environment: its additional environment variables.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        kubeconfig: Path,
        source: Mapping[str, Any],
        *,
        prefix: Sequence[str | Path] = (),
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(folder, name, kubeconfig, source, **more)
        command = [*prefix, *self.process.arguments]
        self.process = Process(command, self.process.log, environment)


class Clock:
    """The time of a process, which ``libfaketime`` reads from a file."""

    def __init__(self, file: Path) -> None:
        programs.find(programs.FAKETIME)
        (library, *_) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            # The file is read again after this many seconds.
            "FAKETIME_CACHE_DURATION": "1",
            # Timeouts and intervals do not depend on the date.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, ahead: int) -> None:
        """Seconds by which the process is ahead of the true time; effective within a second."""
        partial = self._file.with_suffix(".partial")
        partial.write_text(f"{ahead:+d}\n")
        partial.replace(self._file)


def tiny_disk(folder: Path, size: int) -> list[str | Path]:
    """A prefix whose command has an empty disk of a given size at ``folder``."""
    folder.mkdir()
    mount = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return [*alone, "sh", "-c", mount, "sh", str(size), folder]


class StuckReader:
    """A full pipe without a reader, for ``2>`` of a shell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            while True:
                os.write(self._end, b"x" * 512)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._end)


def standard_error(path: Path | str) -> list[str | Path]:
    """A prefix whose command writes its log to ``path``."""
    return ["sh", "-c", 'to=$1; shift; exec "$@" 2>"$to"', "sh", str(path)]
