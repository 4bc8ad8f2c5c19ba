"""The Kubernetes objects in files and folders, and what of them could not be read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.patchfiles import NAMES, PatchFiles
from apiservice.runtime.yamltext import YamlError, documents

MOST_BYTES: Final = 16 << 20
"""Bytes of one file that are read."""
MOST_FILES: Final = 2000
_INPUT: Final = Path("-")
SUFFIXES: Final = (".yaml", ".yml", ".json")
_LIST: Final = "List"


class FileObject(NamedTuple):
    """An object with a kind, and the file that has it."""

    content: dict[str, Any]
    file: str


@dataclass
class ObjectFiles:
    """Files with manifests."""

    paths: Sequence[Path]
    """Files and folders; ``-`` is standard input."""
    notes: list[str] = field(default_factory=list)
    """Files and documents that are not manifests, one line each."""
    unread: list[str] = field(default_factory=list)
    """Files and objects that may be manifests and could not be read, one line each."""

    def objects(self) -> Iterator[FileObject]:
        """Yield the objects of all files.

        Raises:
            ClientError: a path does not exist.
        """
        files = list(self._files())
        patches = PatchFiles(files[:MOST_FILES])
        for file in files[:MOST_FILES]:
            kustomization = None if file == _INPUT else patches.kustomization_of(file)
            if kustomization is None:
                yield from self._objects_of(file)
            else:
                self.notes.append(
                    f"{file}: a patch of {kustomization}, and not judged: check the output of "
                    "kubectl kustomize"
                )
        if len(files) > MOST_FILES:
            self.unread.append(f"only the first {MOST_FILES} of {len(files)} files were read")

    def describe_nothing(self) -> str:
        """Return why no check could look at any object, and what to do."""
        if self.unread:
            return _join_lines(self.unread)
        names = ", ".join(map(str, self.paths))
        nothing = f"{names}: no manifest of a kind that a check looks at"
        return (
            f"{_join_lines(self.notes) or nothing}; name files with HPAs, Deployments, "
            "ScaledObjects, or the output of helm template"
        )

    def _files(self) -> Iterator[Path]:
        for path in self.paths:
            if path == _INPUT:
                yield path
            elif path.is_dir():
                inside = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
                if not inside:
                    self.notes.append(f"{path}: no {', '.join(SUFFIXES)} file in this folder")
                yield from inside
            elif path.exists():  # also a pipe of the shell
                yield path
            else:
                raise ClientError(f"{path}: no such file or folder")

    def _objects_of(self, file: Path) -> Iterator[FileObject]:
        try:
            content = _content(file)
        except OSError as error:
            self.unread.append(f"{file}: {error.strerror or error}")
            return
        if len(content) > MOST_BYTES:
            self.unread.append(f"{file}: larger than {MOST_BYTES} bytes, left out")
            return
        for document in self._documents(file, content):
            yield from self._rows(file, document)

    def _documents(self, file: Path, content: bytes) -> list[Any]:
        """Return the documents of a file; none if it cannot be parsed, which is noted."""
        try:
            return [_as_json(document) for document in documents(content)]
        except YamlError as error:
            why = f"not YAML: {error}"
        except RecursionError:
            why = "values are nested too deep"
        except _NumberError as error:
            why = str(error)
        hint = _TEMPLATE if b"{{" in content or b"${" in content else ""
        # In UTF-16, a zero byte is in each letter.
        versioned = b"apiVersion" in content.replace(b"\0", b"")
        if versioned or file.name in NAMES:
            self.unread.append(f"{file}: {why}{hint}")
        else:
            self.notes.append(f"{file}: not a manifest: {why}{hint}")
        return []

    def _rows(self, file: Path, document: Any) -> Iterator[FileObject]:
        """Yield a document, or the objects of a list of kubectl or the API server."""
        if document is None:
            return
        if not isinstance(document, dict) or not document.get("kind") or _is_of_a_chart(document):
            self._note_other(file, document)
        elif not str(document["kind"]).endswith(_LIST) or "items" not in document:
            yield FileObject(document, str(file))
        elif not isinstance(rows := document.get("items") or [], list):
            self.unread.append(f"{file}: {str(document['kind'])[:63]}: items is not a list")
        else:
            # As kubectl reads it: the API server leaves out the kind of each object.
            kind = str(document["kind"]).removesuffix(_LIST)
            common = {"apiVersion": document.get("apiVersion"), "kind": kind} if kind else {}
            for row in rows:
                yield from self._rows(file, {**common, **row} if isinstance(row, dict) else row)

    def _note_other(self, file: Path, document: Any) -> None:
        version = document.get("apiVersion") if isinstance(document, dict) else None
        kustomization = str(version).startswith(_KUSTOMIZE)  # its kind may be left out
        if version and "metadata" in document and not kustomization:
            self.unread.append(f"{file}: an object has no kind: the API server refuses it")
        else:
            self.notes.append(f"{file}: a document is not a Kubernetes object")


def _join_lines(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


_SHOWN: Final = 3
"""Lines that one message has."""
_KUSTOMIZE: Final = "kustomize.config.k8s.io/"
_TEMPLATE: Final = "; if it is a template, check the output of helm template or envsubst"
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


class _NumberError(ValueError):
    """JSON does not have a number of the file."""


def _is_of_a_chart(document: dict[str, Any]) -> bool:
    """Return whether ``kind`` is a setting of another file, such as the values of a chart.

    They may have ``metadata`` too, with labels; a manifest whose ``apiVersion`` somebody forgot has
    a name or a ``spec``, and a list has ``items``.
    """
    meta = document.get("metadata")
    named = isinstance(meta, dict) and ("name" in meta or "generateName" in meta)
    return not (document.get("apiVersion") or named or {"spec", "items"} & document.keys())


def _content(file: Path) -> bytes:
    """Return a file's content: at most one byte more than is accepted."""
    if file == _INPUT:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)


def _as_json(value: Any) -> Any:
    """Return a value of YAML as kubectl sends it: the keys are texts, 2.0 is 2, and a whole
    number of more than 64 bits is a fraction."""
    if isinstance(value, dict):
        return {_key(key): _as_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_json(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if _LEAST <= value <= _MOST:
        return int(value) if value == int(value) else value
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise _NumberError("a number is infinite or .nan: JSON has no such number")
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(_as_json(key))
