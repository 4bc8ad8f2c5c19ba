"""The files of the page, from the package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

INDEX: Final = "index.html"
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}


class PageFile(NamedTuple):
    """One file."""

    body: bytes
    media_type: str


def page_files() -> Mapping[str, PageFile]:
    """Return every file of the page by its path below ``static``: nothing else is served."""
    by_path: dict[str, PageFile] = {}
    _collect(files("adapter.tools.ui").joinpath("static"), "", by_path)
    return by_path


def _collect(folder: Traversable, prefix: str, by_path: dict[str, PageFile]) -> None:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            _collect(entry, f"{name}/", by_path)
        elif (kind := _TYPES.get(name.rpartition(".")[2])) is not None:
            by_path[name] = PageFile(entry.read_bytes(), kind)
