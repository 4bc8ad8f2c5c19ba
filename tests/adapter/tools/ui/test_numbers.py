"""The page gets numbers as numbers: nothing of it reads one from a text that people see."""

from __future__ import annotations

import re
from pathlib import Path

import adapter.tools.ui

STATIC = Path(adapter.tools.ui.__file__).parent / "static"
READS = re.compile(r"(?:parseFloat|parseInt|\bNumber)\((?P<what>[^;]*)")
ALLOWED = (
    "getComputedStyle(",  # a length of the style sheet
    "this.scroll.style.",  # a length that the page itself has set
    "chosen",  # what the user has chosen of the page's own list
    "isDark)",  # a truth as 0 or 1
    "one === null)",
    "key.slice(0, key.indexOf",  # the page's own key of a colour
)


def test_no_script_reads_a_number_from_a_text() -> None:
    reads = [
        f"{path.name}: {line.strip()}"
        for path in sorted(STATIC.glob("*.js"))
        for line in path.read_text(encoding="utf-8").splitlines()
        for read in READS.finditer(line)
        if not read["what"].startswith(ALLOWED)
    ]
    assert reads == []


def test_the_law_finds_such_a_line() -> None:
    (read,) = READS.finditer("const share = parseFloat(pod.util);")
    assert not read["what"].startswith(ALLOWED)
