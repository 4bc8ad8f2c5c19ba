"""The names that resemble an unknown one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from apiservice.runtime.steps import Steps
from apiservice.view.resource import Key

_AROUND: Final = 250
"""Names before and after the unknown one, in the order of the list, that are compared with it."""
_CUTOFF: Final = 0.6
_LONGEST: Final = 253
"""Characters of a name; a longer text is not one."""


def nearest(keys: Sequence[Key], wanted: Key, count: int = 3) -> Steps[list[str]]:
    """Return the names that resemble ``wanted`` most, the best first."""
    if len(wanted.name) > _LONGEST:
        return []
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.name)
    at = bisect_left(keys, wanted)
    ranked: list[tuple[float, str]] = []
    for key in keys[max(0, at - _AROUND) : at + _AROUND]:
        score = _score(matcher, key.name, wanted.name)
        if score >= _CUTOFF:
            ranked.append((score, key.name))
        yield
    ranked.sort(key=lambda pair: (-pair[0], pair[1]))
    return [name for _, name in ranked[:count]]


def _score(matcher: SequenceMatcher[str], name: str, wanted: str) -> float:
    if wanted in name:
        return 1.0
    matcher.set_seq1(name)
    if matcher.real_quick_ratio() < _CUTOFF or matcher.quick_ratio() < _CUTOFF:
        return 0.0
    return matcher.ratio()
