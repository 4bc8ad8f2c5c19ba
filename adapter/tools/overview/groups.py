"""Rows with one cause as one group: 30 HPAs that an exporter stops are one line.

The page, ``top`` and ``doctor`` group with the same function. What the rows are is the caller's
affair: HPAs, pods or findings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

LEAST: Final = 3
"""Rows of one cause from which a list shows their group. Two rows take no more room as rows."""
NAMES: Final = 3
"""First names that the text of a group mentions."""
_LONGEST: Final = 1000
"""Characters of a text that are compared."""
_DIFFERS: Final = "…"
"""Stands for what is not the same in all rows of a group."""
_TOKEN: Final = re.compile(r"\s+|[^\s,;:()\[\]'\"]+|[,;:()\[\]'\"]")
_AMOUNT: Final = re.compile(r"\d[\d.,]*(?:/\d[\d.]*)?(?:%|[a-zA-Z]{1,3})?\.?")
"""``4``, ``85.5%``, ``12s``, ``3Gi``. Not ``n3`` nor ``10.0.0.7:9400``, which name a cause."""
_CLAUSE: Final = re.compile(r"(?P<one>… \([^()]*\)), … \([^()]*\)")
_COUNTED: Final = re.compile(r" … of …|^… of … ")
"""Two amounts that differ from row to row say nothing about the group."""
_PODS: Final = re.compile(r"\bpods? (?:has|have)\b")


class CauseRow(NamedTuple):
    """One row of a list that says why something is not as it should be."""

    name: str
    """What the row is about: ``chat/llm``."""
    text: str
    """The cause in words."""
    key: str = ""
    """The same for all rows of a cause; empty: made of the text, without what is the row's own."""
    own: Collection[str] = ()
    """Names that belong to the row alone, beside its name: of its workload or pods."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Rows with one cause."""

    key: str
    text: str
    """The cause in words; ``…`` stands for what is not the same in all rows."""
    rows: tuple[int, ...]
    """Positions of the rows in the list that was grouped, in its order."""
    names: tuple[str, ...]
    """The first names, at most :data:`NAMES`."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def shown(self) -> bool:
        """Whether a list shows the group instead of its rows."""
        return self.count >= LEAST

    def describe_names(self) -> str:
        """Return the names: ``chat/a, chat/b, chat/c and 27 more``."""
        rest = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {rest} more" if rest else "")


def by_cause(rows: Sequence[CauseRow]) -> list[CauseGroup]:
    """Return the groups, the largest first, then in the order of their first rows.

    Each row belongs to one group. A row that shares its cause with no other is a group of one
    with its own text.
    """
    places: dict[str, list[int]] = {}
    common = [_common(row) for row in rows]
    for place, row in enumerate(rows):
        places.setdefault(row.key or common[place], []).append(place)
    groups = [_group(key, members, rows, common) for key, members in places.items()]
    return sorted(groups, key=lambda group: (-group.count, group.rows[0]))


def _group(
    key: str, places: Sequence[int], rows: Sequence[CauseRow], common: Sequence[str]
) -> CauseGroup:
    texts = {rows[place].text for place in places}
    text = texts.pop() if len(texts) == 1 else common[places[0]]
    names = tuple(rows[place].name for place in places[:NAMES])
    return CauseGroup(key, text, tuple(places), names)


def _common(row: CauseRow) -> str:
    """Return a text without what is the row's own: its names, amounts, and how many there are."""
    namespace, _, name = row.name.rpartition("/")
    own_parts = {part for part in (namespace, name, row.name, *row.own) if part}
    own_parts |= {part.rpartition("/")[2] for part in row.own}
    text = "".join(_tokens(row.text[:_LONGEST], own_parts))
    while (shorter := _CLAUSE.sub(r"\g<one>", text)) != text:
        text = shorter
    text = _COUNTED.sub("", text.replace(f") and {_DIFFERS} more", ")"))
    return _PODS.sub("pods have", text)


def _tokens(text: str, own_parts: Collection[str]) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        yield _DIFFERS if _AMOUNT.fullmatch(token) or _is_own(token, own_parts) else token


def _is_own(token: str, own_parts: Collection[str]) -> bool:
    """Return whether a word is a name of the row, or of a pod of it: ``llm``, ``llm-7f9-x2k``."""
    word = token.rstrip(".")
    return any(
        word == name or word.startswith((f"{name}-", f"{name}/")) or word.endswith(f"/{name}")
        for name in own_parts
    )
