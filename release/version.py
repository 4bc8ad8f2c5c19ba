"""The version: ``adapter/__init__.py`` has it, and the other files repeat it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from adapter import __version__

ROOT: Final = Path(__file__).parents[1]
_NUMBER: Final = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
_PLACES: Final = (
    ("adapter/__init__.py", rf'^__version__ = "({_NUMBER})"$'),
    ("charts/gpu-metrics-adapter/Chart.yaml", rf"^version: ({_NUMBER})$"),
    ("charts/gpu-metrics-adapter/Chart.yaml", rf'^appVersion: "({_NUMBER})"$'),
    ("charts/gpu-metrics-adapter/Chart.yaml", rf"image: gpu-metrics-adapter:({_NUMBER})$"),
    ("Dockerfile", rf'org\.opencontainers\.image\.version="({_NUMBER})"'),
)
_IMAGE: Final = re.compile(rf"\b((?:gpu-metrics-adapter|IMAGE):){_NUMBER}")
"""In commands of the documents."""
_HEADING: Final = r"^## {version} - (?:(\d{{4}}-\d\d-\d\d)|unreleased)$"


class ReleaseError(Exception):
    """The release cannot be made; the text names the reason and the fix."""


def disagreements(root: Path = ROOT) -> list[str]:
    """Return the files whose version is not that of ``adapter/__init__.py``."""
    wrong = []
    for name, pattern in _PLACES:
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None or match[1] != __version__:
            wrong.append(f"{name} has version {match[1] if match else 'none'}, not {__version__}")
    return wrong


def write(version: str, root: Path = ROOT) -> None:
    """Write a version to every file that has one, and to image names in the documents.

    Raises:
        ReleaseError: the version is not of the form 1.2.3 or 1.2.3-rc.1.
    """
    if not re.fullmatch(_NUMBER, version):
        raise ReleaseError(f"{version} is not a version: write it as 1.2.3 or 1.2.3-rc.1")
    for name, pattern in _PLACES:
        path = root / name
        text = path.read_text(encoding="utf-8")
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise ReleaseError(f"{name} has no version: expected {pattern}")
        start, end = match.span(1)
        path.write_text(text[:start] + version + text[end:], encoding="utf-8")
    for path in (root / "README.md", *(root / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (changed := _IMAGE.sub(rf"\g<1>{version}", text)) != text:
            path.write_text(changed, encoding="utf-8")


def notes(version: str, *, released: bool, root: Path = ROOT) -> str:
    """Return the section of CHANGELOG.md about a version, without its heading.

    Raises:
        ReleaseError: there is none, or it has no date although the version is released.
    """
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(_HEADING.format(version=re.escape(version)), text, re.MULTILINE)
    if match is None:
        raise ReleaseError(f"CHANGELOG.md has no heading `## {version} - DATE`: add it")
    if released and match[1] is None:
        raise ReleaseError(f"CHANGELOG.md says that {version} is unreleased: write the date")
    return re.split(r"^## ", text[match.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip() + "\n"
