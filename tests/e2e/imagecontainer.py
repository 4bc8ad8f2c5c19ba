"""A container of the built image: what `docker run --read-only --tmpfs /tmp` would start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.e2e import programs
from tests.e2e.imagebuild import Image
from tests.e2e.process import FailedError


def run(image: Image, *command: str) -> str:
    """Return the standard output of a command in a new container.

    Raises:
        FailedError: its exit status is not 0.
    """
    done = subprocess.run(
        [*_sandbox(image), *_user(image), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise FailedError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


class Container:
    """Runs the image's entry point from construction until ``stop``.

    Args:
        image: the image.
        arguments: replaces its CMD.
        folder: mounted read-only at /mnt; gets the log.
    """

    def __init__(self, image: Image, arguments: Sequence[str], folder: Path) -> None:
        self._image = image
        folder.chmod(0o755)
        self.log = folder / "container.log"
        reading, writing = os.pipe()
        command = [
            *_sandbox(image),
            *("--ro-bind", str(folder), "/mnt", "--as-pid-1", "--info-fd", str(writing)),
            *_user(image),
            *image.config["Entrypoint"],
            *arguments,
        ]
        with self.log.open("ab") as sink:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
            )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        if not text:
            raise FailedError(f"the container was not made:\n{self.log.read_text()}")
        self.pid: int = json.loads(text)["child-pid"]
        self.tmp = Path(f"/proc/{self.pid}/root/tmp")
        """Its /tmp, a separate file system."""

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def check(self) -> None:
        """Raise FailedError with the log if it has ended."""
        if self._child.poll() is not None:
            raise FailedError(f"ended with {self._child.returncode}:\n{self.log.read_text()}")

    def stop(self) -> int:
        """Send the image's STOPSIGNAL to process 1, wait, and return the exit status."""
        if self._child.poll() is None:
            os.kill(self.pid, signal.Signals[self._image.config["StopSignal"]])
            try:
                self._child.wait(120)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
                raise
        return self._child.returncode


def _sandbox(image: Image) -> list[str]:
    """Use a new process table and new mounts, with only /tmp writable."""
    return [
        *("env", "-i", *_variables(image), str(programs.find(programs.BUBBLEWRAP))),
        *("--ro-bind", str(image.tree), "/", "--dev", "/dev", "--proc", "/proc"),
        *("--perms", "1777", "--tmpfs", "/tmp"),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--chdir", "/"),
    ]


def _variables(image: Image) -> list[str]:
    # HOME from /etc/passwd, like engines set it.
    return [*image.config["Env"], "HOME=/nonexistent"]


def _user(image: Image) -> list[str]:
    """Switch to the image's user permanently, without capabilities."""
    user, _, group = image.config["User"].partition(":")
    return [
        *("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"),
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
    ]
