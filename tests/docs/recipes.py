"""The manifests of docs that `generate` prints: a command in a ``sh`` block, and its output below.

``python -m tests.docs.recipes`` writes the blocks; tests/docs/test_recipes.py compares them.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.adapter.commandline import invoke
from tests.docs.pages import ROOT

FOLDER: Final = ROOT / "docs" / "recipes"
PART: Final = "<!-- in: HorizontalPodAutoscaler.spec -->"
"""Stands above a block that shows the metrics of a manifest only."""
_SHOWN: Final = re.compile(
    r"^```sh\n(?P<command>gpu-metrics-adapter generate [^\n]+)\n```\n\n"
    rf"(?P<part>{re.escape(PART)}\n)?```yaml\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class ShownManifest(NamedTuple):
    """A command and the manifest below it."""

    page: Path
    command: str
    text: str
    is_part: bool


def shown() -> Iterator[ShownManifest]:
    """Yield every manifest that a recipe shows below its command."""
    for page in sorted(FOLDER.glob("*.md")):
        for found in _SHOWN.finditer(page.read_text(encoding="utf-8")):
            yield ShownManifest(page, found["command"], found["text"], bool(found["part"]))


def printed(command: str, is_part: bool = False) -> str:
    """Return what a command prints, or the metrics of this HPA."""
    ended = invoke(*shlex.split(command)[1:])
    if ended.code != 0:
        raise ValueError(f"{command}: {ended.output}")
    if not is_part:
        return ended.output
    metrics = ended.output.partition("\n  metrics:")[2].partition("\n  behavior:")[0]
    return textwrap.dedent(f"  metrics:{metrics}\n")


def write() -> None:
    """Write the manifests into the recipes."""
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = _SHOWN.sub(
            lambda found: (
                f"```sh\n{found['command']}\n```\n\n{found['part'] or ''}```yaml\n"
                f"{printed(found['command'], bool(found['part']))}```"
            ),
            text,
        )
        page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write()
