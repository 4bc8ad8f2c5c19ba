"""The documents that are checked: those at the top, docs/ and the charts' own READMEs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
_FENCE = re.compile(r"^( *)```(.*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Block(NamedTuple):
    """What stands between two fences."""

    page: str
    line: int
    """Of the opening fence."""
    language: str
    """The info string."""
    text: str
    comment: str = ""
    """The HTML comment on the line above, without its marks."""

    @property
    def place(self) -> str:
        """Where it is, as editors and pytest name it."""
        return f"{self.page}:{self.line}"


class Page:
    """One document."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        """Every fenced block, in order."""
        return list(self._blocks())

    @cached_property
    def prose(self) -> str:
        """The text without its blocks and comments, on lines of their own."""
        kept, inside = [], False
        for line in self.text.splitlines():
            fence = bool(_FENCE.match(line))
            kept.append("" if inside or fence else line)
            inside ^= fence
        return re.sub(r"<!--.*?-->", "", "\n".join(kept), flags=re.DOTALL)

    @property
    def codes(self) -> list[str]:
        """What stands in single backticks."""
        return _CODE.findall(self.prose)

    @property
    def links(self) -> list[str]:
        """Targets of links and pictures, without those of other sites."""
        targets = (one or other for one, other in _LINK.findall(self.prose))
        return [link for link in targets if "://" not in link and not link.startswith("mailto:")]

    @property
    def anchors(self) -> set[str]:
        """What a link may point to: headings as GitHub names them, and ids."""
        seen: dict[str, int] = {}
        for line in self.prose.splitlines():
            if heading := re.match(r"#+ +(.*)", line):
                name = _slug(heading[1])
                seen[name] = seen.get(name, -1) + 1
        numbered = {f"{name}-{i}" for name, most in seen.items() for i in range(1, most + 1)}
        return {*seen, *numbered, *re.findall(r"<a (?:id|name)=\"([^\"]+)\"", self.text)}

    def _blocks(self) -> Iterator[Block]:
        start, language, indent, above = 0, "", "", ""
        body: list[str] = []
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = _FENCE.match(line)
            if start and fence and not fence[2].strip():
                comment = re.fullmatch(r"<!-- (.*) -->", above.strip())
                text = "".join(f"{part.removeprefix(indent)}\n" for part in body)
                yield Block(self.name, start, language, text, comment[1] if comment else "")
                start, body, above = 0, [], ""
            elif start:
                body.append(line)
            elif fence:
                start, indent, language = number, fence[1], fence[2].strip()
            else:
                above = line
        if start:
            raise ValueError(f"{self.name}:{start}: the fence is never closed")


def _slug(heading: str) -> str:
    """As github-slugger does it: lower case, words and hyphens, a hyphen for each blank."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


@functools.cache
def pages() -> tuple[Page, ...]:
    """Every document, README.md first."""
    top = sorted(path for path in ROOT.glob("*.md") if path.name != "README.md")
    docs = sorted((ROOT / "docs").rglob("*.md"))
    charts = sorted(ROOT.glob("charts/*/README.md"))
    return tuple(Page(path) for path in (ROOT / "README.md", *top, *docs, *charts))


def blocks(language: str = "") -> list[Block]:
    """Every block of every page, or those of one language."""
    return [block for page in pages() for block in page.blocks if language in ("", block.language)]
