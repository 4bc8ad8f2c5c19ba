"""Volumes of a pod as files, written and replaced like the kubelet does."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e import podusers
from tests.e2e.cluster import Object

Lookup = Callable[[str, str], Object | None]
"""(kind, name) -> the object in the pod's namespace, if it exists."""
Token = Callable[[Mapping[str, Any]], str]
"""A projected volume's ``serviceAccountToken`` -> a token of the pod's account."""


class NotYetError(Exception):
    """A ConfigMap or Secret of a volume does not exist yet."""


class File(NamedTuple):
    """One file of a volume."""

    content: bytes
    mode: int


class Volumes:
    """The volumes of one pod, below a folder.

    Args:
        group: the pod's ``fsGroup``, which can read restricted files.
    """

    def __init__(self, folder: Path, pod: Object, lookup: Lookup, token: Token) -> None:
        self._folder = folder
        self._pod = pod
        self._lookup, self._token = lookup, token
        self._group = pod["spec"].get("securityContext", {}).get("fsGroup")
        self._tokens: dict[str, str] = {}
        self._written: dict[str, dict[str, File]] = {}
        self._numbers = itertools.count()

    def path(self, name: str) -> Path:
        """Return the folder of a volume."""
        return self._folder / name

    def write(self) -> None:
        """Write every volume whose content has changed.

        Raises:
            NotYetError: something that is not optional is missing.
        """
        for volume in self._pod["spec"].get("volumes", ()):
            name = volume["name"]
            if "emptyDir" in volume:
                self._empty(self.path(name))
                continue
            files = self._files(volume)
            if files != self._written.get(name):
                self._replace(self.path(name), files)
                self._written[name] = files

    def renew_tokens(self) -> None:
        """Request new tokens at the next ``write``."""
        self._tokens.clear()

    def _files(self, volume: Mapping[str, Any]) -> dict[str, File]:
        if "configMap" in volume or "secret" in volume:
            kind = "configMap" if "configMap" in volume else "secret"
            return self._source(kind, volume[kind], volume[kind].get("defaultMode", 0o644))
        if "projected" in volume:
            mode = volume["projected"].get("defaultMode", 0o644)
            files: dict[str, File] = {}
            for source in volume["projected"]["sources"]:
                ((kind, row),) = source.items()
                files |= self._source(kind, row, mode)
            return files
        if "downwardAPI" in volume:
            return self._source("downwardAPI", volume["downwardAPI"], 0o644)
        raise NotImplementedError(f"a volume of kind {sorted(volume)}")

    def _source(self, kind: str, row: Mapping[str, Any], mode: int) -> dict[str, File]:
        if kind == "serviceAccountToken":
            if row["path"] not in self._tokens:
                self._tokens[row["path"]] = self._token(row)
            # Without fsGroup, the kubelet makes the pod's user the owner (pkg/volume/projected).
            readable = 0o600 if self._group is not None else 0o644
            return {row["path"]: File(self._tokens[row["path"]].encode(), readable)}
        if kind == "downwardAPI":
            rows = row["items"]
            return {file["path"]: File(self._field(file), mode) for file in rows}
        name = row.get("secretName") or row["name"]
        source = self._lookup("Secret" if kind == "secret" else "ConfigMap", name)
        optional = row.get("optional", False)
        if source is None and optional:
            return {}
        if source is None:
            raise NotYetError(f"{kind} {name}")
        return _picked(_content(source), row.get("items"), mode, optional)

    def _field(self, row: Mapping[str, Any]) -> bytes:
        return field(self._pod, row["fieldRef"]["fieldPath"]).encode()

    def _empty(self, path: Path) -> None:
        if path.exists():
            return
        path.mkdir(parents=True)
        path.chmod(0o2777 if self._group is not None else 0o777)
        self._own(path)

    def _replace(self, path: Path, files: Mapping[str, File]) -> None:
        """Replace the content atomically: readers see only the old or only the new content."""
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755)
        content = path / f"..content-{next(self._numbers)}"
        content.mkdir(mode=0o755)
        for name, file in files.items():
            target = content / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            # The kubelet lets the pod's group read everything that the owner can read.
            target.chmod(file.mode | (0o440 if self._group is not None else 0))
            self._own(target)
        link, before = path / "..data", path / "..data_tmp"
        old = path / link.readlink() if link.is_symlink() else None
        before.symlink_to(content.name)
        before.rename(link)
        self._links(path, {name.split("/", 1)[0] for name in files})
        if old is not None:
            shutil.rmtree(old)

    def _links(self, path: Path, names: Iterable[str]) -> None:
        wanted = set(names)
        for name in wanted:
            if not (path / name).is_symlink():
                (path / name).symlink_to(f"..data/{name}")
        for present in path.iterdir():
            if not present.name.startswith("..") and present.name not in wanted:
                present.unlink()

    def _own(self, path: Path) -> None:
        if self._group is not None and podusers.many():
            os.chown(path, -1, self._group)


def field(pod: Object, path: str) -> str:
    """Return the value of a ``fieldPath`` of the downward API."""
    value: Any = pod
    for part in path.split("."):
        value = value.get(part, "")
    if not isinstance(value, str):
        raise NotImplementedError(f"fieldPath {path}")
    return value


def _content(obj: Object) -> dict[str, bytes]:
    encoded = obj.get("binaryData") if obj["kind"] == "ConfigMap" else obj.get("data")
    plain = obj.get("data") if obj["kind"] == "ConfigMap" else None
    content = {key: value.encode() for key, value in (plain or {}).items()}
    return content | {key: base64.b64decode(value) for key, value in (encoded or {}).items()}


def _picked(
    content: Mapping[str, bytes],
    items: Iterable[Mapping[str, Any]] | None,
    mode: int,
    optional: bool,
) -> dict[str, File]:
    if items is None:
        return {key: File(value, mode) for key, value in content.items()}
    rows = list(items)
    lacking = [row["key"] for row in rows if row["key"] not in content]
    if lacking and not optional:
        raise NotYetError(f"keys {lacking}")
    return {
        row["path"]: File(content[row["key"]], row.get("mode", mode))
        for row in rows
        if row["key"] not in lacking
    }
