"""A program in a real pseudo-terminal: keys in, pictures out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.adapter.commandline import clean_environ

_PATIENCE = 90.0
"""Seconds after which what a test waits for is missing."""
_CONTROL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of the program, so that Ctrl-C and a new size are signals."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_ENTER, _LEAVE, _CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


@dataclass
class Terminal:
    """The user's side of a terminal."""

    master: int
    slave: int
    process: subprocess.Popen[bytes]
    written: bytearray = field(default_factory=bytearray)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def picture(self) -> list[str]:
        """The lines of the last complete picture, without styles."""
        whole = bytes(self.written).decode(errors="replace").split("\x1b[H")
        return [_STYLE.sub("", line).rstrip() for line in whole[-1].split("\r\n")]

    def wait(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """Return the first picture for which something holds."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            picture = self.picture
            if holds(picture):
                return picture
            time.sleep(0.02)
        raise AssertionError("\n".join(["the picture is:", *self.picture]))

    def see(self, text: str) -> list[str]:
        return self.wait(lambda picture: any(text in line for line in picture))

    def end(self) -> int:
        """Return the exit status of a program that ends; show where one is that does not."""
        try:
            return self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            drawn = len(self.written)
            flags = self.mode[3]
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(_PATIENCE)
            stacks = bytes(self.written[drawn:]).decode(errors="replace")
            signals = "gives" if flags & termios.ISIG else "gives no"
            raise AssertionError(f"it runs on; the terminal {signals} signals:\n{stacks}") from None

    @property
    def restored(self) -> bool:
        """Whether the program has left the alternate screen and shows the cursor."""
        written = bytes(self.written)
        left = written.rfind(_LEAVE) > written.rfind(_ENTER)
        return left and written.rfind(_CURSOR) > written.rfind(b"\x1b[?25l")

    @property
    def mode(self) -> list[Any]:
        """The settings of the terminal."""
        return termios.tcgetattr(self.slave)


@contextlib.contextmanager
def terminal(
    code: str, *arguments: str, size: tuple[int, int] = (100, 30), **environ: str
) -> Iterator[Terminal]:
    """Run Python code in a terminal of a size, until the block ends."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    base = {
        key: value
        for key, value in clean_environ().items()
        if key not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _CONTROL, sys.executable, "-c", code, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={
            **base,
            "TERM": "xterm-256color",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONFAULTHANDLER": "1",
            **environ,
        },
    )
    tty = Terminal(master, slave, process)

    def read() -> None:
        with contextlib.suppress(OSError):  # both ends are closed
            while data := os.read(master, 65536):
                tty.written += data

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield tty
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(slave)
        reader.join(10)
        os.close(master)
