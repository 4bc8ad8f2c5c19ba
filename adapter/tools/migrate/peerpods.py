"""How prometheus-adapter runs: what a Deployment says about its pods.

It comes from a cluster, from a manifest in a file, or from the values of the chart
(:mod:`adapter.tools.migrate.chartdeployment`), and is read here for all of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.tools.client.access import Json
from adapter.tools.client.errors import ClientError
from adapter.tools.migrate.arguments import Flags, parse

PROGRAM: Final = "prometheus-adapter"
_REFERENCE: Final = re.compile(r"\$\$|\$\(([^()]*)\)")
"""Of a variable in an argument; two dollars are one."""


class PeerPods(NamedTuple):
    """The pods of one Deployment of prometheus-adapter."""

    place: str
    """Such as ``Deployment monitoring/prometheus-adapter``."""
    replicas: int
    spec: Json
    """The pod's spec."""
    container: Json
    flags: Flags
    """With the variables that the container names by value."""
    used: frozenset[str]
    """Variables that the arguments refer to."""
    env: Mapping[str, str | None]
    """Value of each variable; None if it is in another object."""
    mounts: Sequence[Json]
    volumes: Mapping[str, Json]
    """By name."""

    def mount_of(self, path: str) -> Json | None:
        """Return the mount that has a file; None if it is of the image, or of every pod."""
        holders = [mount for mount in self.mounts if is_below(path, str(mount["mountPath"]))]
        return max(holders, key=lambda mount: len(str(mount["mountPath"])), default=None)

    def configmap(self) -> tuple[str, str]:
        """Return the ConfigMap and its key that ``--config`` leads to; raises ClientError."""
        path = dict(self.flags).get("config", "")
        if not path:
            raise ClientError(
                f"{self.place} has no argument --config; name its configuration with -f FILE"
            )
        mount = self.mount_of(path) or {}
        source = part(self.volumes.get(str(mount.get("name"))), "configMap")
        if not source.get("name"):
            raise ClientError(
                f"{self.place} has {path} from no ConfigMap; name its configuration with -f FILE"
            )
        key = str(mount.get("subPath") or posixpath.relpath(path, str(mount["mountPath"])))
        renamed = [row.get("key") for row in rows(source, "items") if row.get("path") == key]
        return str(source["name"]), str(renamed[0] if renamed else key)


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or within it."""
    path, folder = posixpath.normpath(path), posixpath.normpath(folder)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def part(value: Any, *names: str) -> Json:
    """Return a mapping within mappings; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def rows(value: Any, name: str) -> list[Json]:
    """Return the mappings in a list of a mapping; empty if there is none."""
    values = value.get(name) if isinstance(value, dict) else None
    return [row for row in values if isinstance(row, dict)] if isinstance(values, list) else []


def read_pods(deployment: Any) -> PeerPods | None:
    """Return how prometheus-adapter runs; None if a Deployment does not run it."""
    spec = part(deployment, "spec", "template", "spec")
    container = next((row for row in rows(spec, "containers") if _runs(row)), None)
    if container is None:
        return None
    meta = part(deployment, "metadata")
    place = "/".join(str(meta[key]) for key in ("namespace", "name") if meta.get(key))
    replicas = deployment["spec"].get("replicas")
    env = {
        str(row.get("name")): None if "valueFrom" in row else str(row.get("value") or "")
        for row in rows(container, "env")
    }
    words = _words(container)
    return PeerPods(
        f"Deployment {place}",
        replicas if isinstance(replicas, int) else 1,
        spec,
        container,
        parse([_expand(word, env) for word in words]),
        frozenset(match[1] for word in words for match in _REFERENCE.finditer(word) if match[1]),
        env,
        [row for row in rows(container, "volumeMounts") if row.get("mountPath")],
        {str(row.get("name")): row for row in rows(spec, "volumes")},
    )


def _words(container: Json) -> list[str]:
    """Return the command line of a container."""
    lists = [container.get(key) for key in ("command", "args")]
    words = [word for row in lists if isinstance(row, list) for word in row]
    return [str(word) for word in words if isinstance(word, str | int | float)]


def _runs(container: Json) -> bool:
    image = str(container.get("image") or "").rpartition("/")[2]
    flags = {name for name, _ in parse(_words(container))}
    return PROGRAM in image or {"prometheus-url", "config"} <= flags


def _expand(word: str, env: Mapping[str, str | None]) -> str:
    """Return an argument as the kubelet passes it; what is not known here stays."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        value = env.get(match[1])
        return match[0] if value is None else value

    return _REFERENCE.sub(replacement, word)
