"""A lint for the words of this project's prose: ``python -m docs.prose``, a part of ``make lint``.

It reads Markdown and YAML as they are. Of Python it reads comments, docstrings, other strings and
the names of tests.
Text in backticks and lines that contain ``prose: ignore`` are not checked.

Why not a library: codespell's dictionaries hold single words and cannot exclude Python's names,
proselint's rules are fixed, and Vale is a Go program that would have to be downloaded.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("adapter", "apiservice", "charts", "docs", "image", "load", "research", "tests")
ROOT_FILES: Final = ("*.md", "Dockerfile", "Makefile", "pyproject.toml")
SUFFIXES: Final = frozenset({".md", ".py", ".tpl", ".txt", ".yaml"})
"""The root files, and every file in the folders with one of the suffixes, are checked."""
_OWN: Final = frozenset({"docs/prose.py", "tests/docs/test_prose.py"})
"""Files that contain the words themselves."""
WORDS: Final = {
    r"mend(?:s|ed|ing)?": "fix",
    r"told|tells": "name the actor: 'the log names …', 'configured to …', 'gets', 'shows'",
    r"who(?:m)?ever": "'anyone who …', or name the actor",
    r"wherever": "where",
    r"whatever": "'any …', or 'regardless of'",
    r"anew": "again",
    r"wholly": "completely",
    r"(?P<allowed>there\s+)?(?:is|are|was|were)\s+no(?!\s+(?:longer|more|less|later|earlier)\b)": (
        "'is not a …', 'has no …'"
    ),
    r"shall": "'must', 'should', or the present tense",
    r"(?:is|are|was|were|be|been)\s+away": "unavailable, absent",
    r"at\s+the\s+(?:most|least)": "'at most', 'at least'",
    r"comes?\s+of": "results from",
    r"knows?\s+of": "knows",
    r"its\s+like": "similar ones",
    r"datum": "value, sample",
    r"misfits?": "unscrapable pod",
    r"dead[\s-]man(?:'s)?": "lifeline",
    r"unless\s+set": "by default",
    r"of\s+(?:ours|yours|one's\s+own)": "'our own …', 'your own …'",
    r"\w+n't|(?:it|that|there|what|here)'s|(?:they|we|you)'(?:re|ve|ll)": "no contractions",
}
"""Pattern -> what to write instead. A match with the group ``allowed`` is not reported."""
_PATTERNS: Final = [
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), hint) for pattern, hint in WORDS.items()
]
_IGNORE: Final = re.compile(r"^.*prose: ignore.*$|(?P<ticks>`+)[^`\n]+(?P=ticks)", re.MULTILINE)
_QUOTES: Final = re.compile(r"^[a-zA-Z]{0,2}(?:'''|\"\"\"|'|\")|(?:'''|\"\"\"|'|\")$|^#")
_FIELD: Final = re.compile(r"\{[^{}\n]*\}")
_NOT_PROSE: Final = re.compile(r"[^\s'\"]")
_TEXT: Final = frozenset(
    getattr(tokenize, name, -1) for name in ("COMMENT", "STRING", "FSTRING_MIDDLE")
)


class Finding(NamedTuple):
    """A word that the project does not use."""

    path: str
    line: int
    word: str
    hint: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}: {self.hint}"


def findings(path: str, text: str) -> list[Finding]:
    """Return what is wrong with a file's prose, line by line."""
    prose = python_prose(text) if path.endswith(".py") else text
    prose = _IGNORE.sub(_blank, prose)
    problems = [
        Finding(path, prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), hint)
        for pattern, hint in _PATTERNS
        for match in pattern.finditer(prose)
        if not match.groupdict().get("allowed")
    ]
    return sorted(problems)


def python_prose(text: str) -> str:
    """Return a source with the same lines, in which all but comments and strings is blotted out.

    The quotes between strings become blanks: a phrase may go on in the next string or line.
    """
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    parts: list[str] = []
    end = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _TEXT and not token.string.startswith("test_"):
            continue
        begin = starts[token.start[0] - 1] + token.start[1]
        parts.append(_between(text[end:begin]))
        end = starts[token.end[0] - 1] + token.end[1]
        inner = _QUOTES.sub(_blank, text[begin:end])
        if token.type not in _TEXT:
            inner = inner.replace("_", " ")
        parts.append(_FIELD.sub(_blot, inner))
    parts.append(_between(text[end:]))
    return "".join(parts)


def _between(code: str) -> str:
    return _NOT_PROSE.sub("¦", code).replace("'", " ").replace('"', " ")


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _blot(match: re.Match[str]) -> str:
    return "¦" * len(match[0])


def checked() -> Iterator[str]:
    """Yield the path of each file that is checked, relative to the root."""
    files = [path for glob in ROOT_FILES for path in ROOT.glob(glob)]
    files += [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES
    ]
    for path in sorted(files):
        name = path.relative_to(ROOT).as_posix()
        if name not in _OWN:
            yield name


def main() -> int:
    """Print each finding; return how the process ends."""
    problems = [
        finding
        for path in checked()
        for finding in findings(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
    for finding in problems:
        sys.stdout.write(f"{finding}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
