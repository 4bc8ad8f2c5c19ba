"""The manifests of docs that `generate` prints: a command in a ``sh`` block, and its output below.

``python -m tests.docs.recipes`` writes the blocks; tests/docs/test_recipes.py compares them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.adapter.commandline import invoke
from tests.docs.pages import ROOT

FOLDER: Final = ROOT / "docs" / "recipes"
_SHOWN: Final = re.compile(
    r"^```sh\n(?P<command>gpu-metrics-adapter generate [^\n]+)\n```\n\n```yaml\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class ShownManifest(NamedTuple):
    """A command and the manifest below it."""

    page: Path
    command: str
    text: str


def shown() -> Iterator[ShownManifest]:
    """Yield every manifest that a recipe shows below its command."""
    for page in sorted(FOLDER.glob("*.md")):
        for found in _SHOWN.finditer(page.read_text(encoding="utf-8")):
            yield ShownManifest(page, found["command"], found["text"])


def printed(command: str) -> str:
    """Return what a command prints."""
    ended = invoke(*shlex.split(command)[1:])
    if ended.code != 0:
        raise ValueError(f"{command}: {ended.output}")
    return ended.output


def write() -> None:
    """Write the manifests into the recipes."""
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = _SHOWN.sub(
            lambda found: (
                f"```sh\n{found['command']}\n```\n\n```yaml\n{printed(found['command'])}```"
            ),
            text,
        )
        page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write()
