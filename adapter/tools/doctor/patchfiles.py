"""Files that are patches of kustomize: each is a part of an object, so no check can judge it alone.

A kustomization names them under ``patches`` (``path``), and under the older
``patchesStrategicMerge`` (a path, or the patch itself) and ``patchesJson6902``
(kubernetes-sigs/kustomize ``api/types/kustomization.go``). They are in its folder or below, or,
with ``LoadRestrictionsNone`` (Flux), anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from apiservice.runtime.yamltext import YamlError, document

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that kustomize reads in a folder."""
_MOST_BYTES: Final = 1 << 20
"""Bytes of a kustomization that are read."""


class PatchFiles:
    """The patches of the kustomizations around files, and of those among them.

    Each folder is read once.

    Args:
        files: those that are judged.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._patches: dict[Path, dict[Path, Path]] = {}
        """Folder -> the patches that its kustomization names, each with the kustomization."""
        self._elsewhere: dict[Path, Path] = {}
        """Patches that a kustomization among the files names, each with the kustomization."""
        for folder in sorted({_absolute(file).parent for file in files if file.name in NAMES}):
            self._elsewhere |= self._patches_of(folder)

    def kustomization_of(self, file: Path) -> Path | None:
        """Return the kustomization of which a file is a patch; None for another file."""
        absolute = _absolute(file)
        around = (self._patches_of(folder).get(absolute) for folder in absolute.parents)
        kustomization = next(filter(None, around), None) or self._elsewhere.get(absolute)
        if kustomization is None or file.is_absolute():
            return kustomization
        return Path(os.path.relpath(kustomization))

    def _patches_of(self, folder: Path) -> Mapping[Path, Path]:
        if folder not in self._patches:
            self._patches[folder] = dict(_patches(folder))
        return self._patches[folder]


def _absolute(path: Path) -> Path:
    """Return a path without ``..``, as it is written: a link stays a link."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps ``..``


def _patches(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the patches of a folder's kustomization, each with the kustomization."""
    for name in NAMES:
        try:
            with (folder / name).open("rb") as opened:
                content = document(opened.read(_MOST_BYTES))
        except (OSError, YamlError):
            continue
        for path in _paths(content):
            yield _absolute(folder / path), folder / name
        return


def _paths(kustomization: Any) -> Iterator[str]:
    """Yield the texts under the keys of patches: paths, or for the older key also patches."""
    rows = kustomization if isinstance(kustomization, dict) else {}
    for key in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        patches = rows.get(key)
        for patch in patches if isinstance(patches, list) else ():
            path = patch.get("path") if isinstance(patch, dict) else patch
            if isinstance(path, str):
                yield path
