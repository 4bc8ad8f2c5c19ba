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
PARTS: Final = {
    "HorizontalPodAutoscaler": ("  metrics:", "\n  behavior:"),
    "ScaledObject": ("  minReplicaCount:", "\n  advanced:"),
}
"""Kind that stands above a block which shows a part of a manifest -> begin and end of the part."""
_SHOWN: Final = re.compile(
    r"^```sh\n(?P<command>gpu-metrics-adapter generate [^\n]+)\n```\n\n"
    r"(?P<part><!-- in: (?P<kind>\w+)\.spec -->\n)?```yaml\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class ShownManifest(NamedTuple):
    """A command and the manifest below it."""

    page: Path
    command: str
    text: str
    kind: str
    """Of the manifest, if the block is a part of it."""


def shown() -> Iterator[ShownManifest]:
    """Yield every manifest that a recipe shows below its command."""
    for page in sorted(FOLDER.glob("*.md")):
        for match in _SHOWN.finditer(page.read_text(encoding="utf-8")):
            yield ShownManifest(page, match["command"], match["text"], match["kind"] or "")


def printed(command: str, kind: str = "") -> str:
    """Return what a command prints, or the part of this manifest that pages show."""
    ended = invoke(*shlex.split(command)[1:])
    if ended.code != 0:
        raise ValueError(f"{command}: {ended.output}")
    if not kind:
        return ended.output
    begin, end = PARTS[kind]
    part = ended.output.partition(f"\n{begin}")[2].partition(end)[0]
    return textwrap.dedent(f"{begin}{part}\n")


def write() -> None:
    """Write the manifests into the recipes."""
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = _SHOWN.sub(
            lambda match: (
                f"```sh\n{match['command']}\n```\n\n{match['part'] or ''}```yaml\n"
                f"{printed(match['command'], match['kind'] or '')}```"
            ),
            text,
        )
        page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write()
