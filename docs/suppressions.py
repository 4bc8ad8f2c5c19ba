"""A lint for suppressions: ``python -m docs.suppressions``, a part of ``make lint``.

Each ``noqa``, ``type: ignore`` and ``pragma: no cover`` needs its reason: in the same comment, or
in a comment on the line above. Consecutive lines share the reason of the first one.
Each ``skip`` and ``xfail`` of pytest needs a text. Each exception in ``pyproject.toml`` needs a
comment.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("adapter", "apiservice", "docs", "image", "load", "tests")
_CODES: Final = r"[A-Z]+\d+(?:,\s*[A-Z]+\d+)*"
_MARK: Final = re.compile(
    rf"#\s*(?:ruff:\s*)?noqa(?::\s*{_CODES})?"
    r"|#\s*type:\s*ignore(?:\[[^\]]*\])?|#\s*pragma:\s*no cover"
)
_EXCEPTION: Final = re.compile(r'\s+"[A-Z]+\d+",|"[^"]+" = \["|ignore_\w+ =|extend-exclude =')
_REASON: Final = re.compile(r"[A-Za-z]{2}")
_SKIPS: Final = frozenset({"skip", "skipif", "xfail"})


def unexplained(path: str, text: str) -> list[int]:
    """Return the lines that suppress a finding or a test and give no reason."""
    if path.endswith(".toml"):
        return list(_exceptions(text))
    return sorted([*_comments(text), *_skips(text)])


def _exceptions(text: str) -> Iterator[int]:
    above = ""
    for number, line in enumerate(text.splitlines(), 1):
        if _EXCEPTION.match(line) and "#" not in line and not above.startswith("#"):
            yield number
        above = line


def _comments(text: str) -> Iterator[int]:
    lines = ["", *text.splitlines()]
    explained: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        if token.type != tokenize.COMMENT or not _MARK.match(token.string):
            continue
        above = lines[number - 1].strip()
        if (
            _REASON.search(_MARK.sub("", token.string))
            or number - 1 in explained
            or (above.startswith("#") and _REASON.search(_MARK.sub("", above)))
        ):
            explained.add(number)
        else:
            yield number


def _skips(text: str) -> Iterator[int]:
    nodes = list(ast.walk(ast.parse(text)))
    explained = {
        id(node.func)
        for node in nodes
        if isinstance(node, ast.Call)
        and (len(node.args) == 1 or any(keyword.arg == "reason" for keyword in node.keywords))
    }
    # ``pytest.skip.Exception`` skips nothing.
    explained |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in _SKIPS
            and ast.unparse(node.value) in {"pytest", "pytest.mark"}
            and id(node) not in explained
        ):
            yield node.lineno


def main() -> int:
    """Print each line without a reason; return how the process ends."""
    files = [ROOT / "pyproject.toml"]
    files += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    messages = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: add the reason of this suppression\n"
        for path in sorted(files)
        for line in unexplained(path.name, path.read_text(encoding="utf-8"))
    ]
    sys.stdout.write("".join(messages))
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
