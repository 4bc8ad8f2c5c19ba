"""Paragraphs of the generated pages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

_WIDTH: Final = 100


def wrapped(text: str) -> Iterator[str]:
    """Yield the lines of each paragraph of ``text``, and an empty line after each."""
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        yield from textwrap.wrap(
            " ".join(paragraph.split()), _WIDTH, break_long_words=False, break_on_hyphens=False
        )
        yield ""
