"""The container of a pod of a known image: a process in bubblewrap that follows the pod's spec.

It replaces a container runtime: a root file system of the image (only the programs of this machine,
Python's environment and the sources), a separate process table with the program as process 1, the
user and groups of the pod, its volumes, its environment, and no capabilities. It does not implement
seccomp, memory limits and CPU limits.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e import podusers, programs
from tests.e2e.cluster import Object
from tests.e2e.podenvironment import PYTHON, expanded, variables
from tests.e2e.podsandbox import Sandbox
from tests.e2e.podvolumes import Lookup, Volumes

ENTRYPOINT = (sys.executable, "-P", "-m", "adapter")
OURS, PEER = "gpu-metrics-adapter", "prometheus-adapter"
"""The last parts of the images' names in any registry."""
USER = 65532
"""The defaults of the image."""
_SYSTEM = (Path("/usr"), Path("/etc/ssl"), Path("/etc/ld.so.cache"))
_IMAGE = (
    *_SYSTEM,
    PYTHON,
    Path(sys.base_prefix),
    programs.ROOT / "adapter",
    programs.ROOT / "apiservice",
)


class Image(NamedTuple):
    """What a container has from its image."""

    entrypoint: Sequence[str]
    files: Mapping[Path, Path]
    """Path in the container -> path on this machine."""


def image_of(pod: Object) -> Image | None:
    """Return the image of a pod that really runs; None for every other one."""
    name = str(pod["spec"]["containers"][0]["image"]).rpartition("/")[2]
    name = name.partition(":")[0].partition("@")[0]
    if name == OURS:
        return Image(ENTRYPOINT, {path: path for path in _IMAGE if path.exists()})
    if name == PEER:
        system = {path: path for path in _SYSTEM if path.exists()}
        # The arguments of its chart begin with the program.
        return Image((), system | {Path("/adapter"): programs.find(programs.PROMETHEUS_ADAPTER)})
    return None


class Container:
    """Runs from construction until it exits or is killed."""

    def __init__(
        self,
        pod: Object,
        spec: Mapping[str, Any],
        sandbox: Sandbox,
        volumes: Volumes,
        lookup: Lookup,
        log: Path,
    ) -> None:
        self.spec = spec
        image = image_of(pod)
        assert image is not None, f"{pod['metadata']['name']}: its image is not known"
        environment = variables(pod, self.spec, sandbox.address, lookup)
        reading, writing = os.pipe()
        command = [
            *sandbox.enter,
            *_bubblewrap(pod, self.spec, volumes, environment, image.files),
            *("--info-fd", str(writing)),
            *_user(pod, self.spec),
            *self.spec.get("command", image.entrypoint),
            *(expanded(argument, environment) for argument in self.spec.get("args", ())),
        ]
        with log.open("ab") as sink:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                cwd="/",
            )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        self.pid: int | None = json.loads(text)["child-pid"] if text else None
        """Process 1 of the container; None if it could not be started."""

    def ended(self) -> int | None:
        """Return the exit status after its end; 128 plus the signal, like runtimes."""
        code = self._child.poll()
        if code is None:
            return None
        return 128 - code if code < 0 else code

    def signal(self, sign: signal.Signals) -> None:
        """Send a signal to process 1 if it exists."""
        if self.pid is not None and self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sign)

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self.signal(signal.SIGKILL)
        self._child.wait()


def _bubblewrap(
    pod: Object,
    container: Mapping[str, Any],
    volumes: Volumes,
    environment: Mapping[str, str],
    image: Mapping[Path, Path],
) -> list[str]:
    mounts = [
        ("--bind" if not row.get("readOnly") else "--ro-bind", volumes.path(row["name"]), row)
        for row in container.get("volumeMounts", ())
    ]
    if unknown := [row for _, _, row in mounts if row.keys() & {"subPath", "subPathExpr"}]:
        raise NotImplementedError(f"volume mounts {unknown}")
    targets = [*image, *(Path(row["mountPath"]) for _, _, row in mounts)]
    arguments = [
        *("--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--hostname", pod["metadata"]["name"]),
        *_folders(targets),
        *("--perms", "1777", "--dir", "/tmp"),
        *(part for path in image for part in ("--ro-bind", str(image[path]), str(path))),
        *(
            part
            for name in ("bin", "lib", "lib64")
            for part in ("--symlink", f"usr/{name}", f"/{name}")
        ),
        *("--proc", "/proc", "--dev", "/dev"),
    ]
    for how, source, row in mounts:
        arguments += [how, str(source), row["mountPath"]]
    # A volume over the folder of this repository would hide the image's files.
    over = [Path(row["mountPath"]) for _, _, row in mounts]
    hidden = [path for path in image if any(map(path.is_relative_to, over))]
    arguments += _folders(hidden)
    arguments += [part for path in hidden for part in ("--ro-bind", str(image[path]), str(path))]
    if container.get("securityContext", {}).get("readOnlyRootFilesystem"):
        arguments += ["--remount-ro", "/"]
    arguments += ["--chdir", container.get("workingDir", "/"), "--clearenv"]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    return [str(programs.find(programs.BUBBLEWRAP)), *arguments]


def _folders(targets: Sequence[Path]) -> list[str]:
    """Make the parents of a mount point accessible to every user."""
    parents = sorted({parent for path in targets for parent in path.parents} - {Path("/")})
    return [part for path in parents for part in ("--perms", "0755", "--dir", str(path))]


def _user(pod: Object, container: Mapping[str, Any]) -> list[str]:
    """Switch to the pod's user, without capabilities."""
    of_pod = pod["spec"].get("securityContext", {})
    merged = of_pod | container.get("securityContext", {})
    user, group = merged.get("runAsUser", USER), merged.get("runAsGroup", USER)
    if not podusers.many():
        return ["--unshare-user", "--uid", str(user), "--gid", str(group), "--"]
    groups = {group, *of_pod.get("supplementalGroups", ())}
    if "fsGroup" in of_pod:
        groups.add(of_pod["fsGroup"])
    return [
        *("--", "setpriv", f"--reuid={user}", f"--regid={group}"),
        f"--groups={','.join(map(str, sorted(groups)))}",
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
    ]
