"""The instructions of the Dockerfile, and the build context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


class Instruction(NamedTuple):
    """One instruction, its continued lines joined and its comments left out."""

    stage: int
    """How many FROM came before it."""
    name: str
    rest: str


def instructions(text: str = TEXT) -> list[Instruction]:
    """All instructions, in their order."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*#", line)]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    steps: list[Instruction] = []
    stage = 0
    for line in filter(None, joined.splitlines()):
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        steps.append(Instruction(stage, name, re.sub(r"\s+", " ", rest.strip())))
    return steps


def allowed() -> list[str]:
    """The names that .dockerignore lets through; all others are kept out."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


def sources() -> list[Path]:
    """The files that are sent, relative to the repository, sorted."""
    return sorted(_files())


def _files() -> Iterator[Path]:
    for name in allowed():
        place = ROOT / name
        for file in place.rglob("*") if place.is_dir() else [place]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(ROOT)
