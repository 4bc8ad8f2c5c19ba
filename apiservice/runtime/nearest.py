"""The known names that resemble an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from apiservice.runtime.steps import Steps, at_once

_CUTOFF: Final = 0.6
_LONGEST: Final = 253
"""Characters of a name in Kubernetes. Nothing resembles a longer text: comparing it takes long."""


def nearest(
    name: str,
    known_names: Iterable[str],
    count: int = 3,
    *,
    cutoff: float = _CUTOFF,
    parts: bool = False,
) -> list[str]:
    """Return the known names that resemble ``name`` most, the best first.

    Args:
        name: the unknown name.
        known_names: the names that exist.
        count: names that are returned at most.
        cutoff: the least likeness, from 0 to 1.
        parts: also return names that contain ``name`` or that ``name`` contains.
    """
    return at_once(nearest_in_steps(name, known_names, count, cutoff=cutoff, parts=parts))


def nearest_in_steps(
    name: str,
    known_names: Iterable[str],
    count: int = 3,
    *,
    cutoff: float = _CUTOFF,
    parts: bool = False,
) -> Steps[list[str]]:
    """Return the same as :func:`nearest`, in one step a name."""
    if not name or len(name) > _LONGEST:
        return []
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(name)
    ranked: set[tuple[float, str]] = set()
    for other in known_names:
        matcher.set_seq1(other)
        near = matcher.real_quick_ratio() >= cutoff and matcher.quick_ratio() >= cutoff
        score = matcher.ratio() if near else 0.0
        if score >= cutoff or (parts and other and (name in other or other in name)):
            ranked.add((-score, other))
        yield
    return [other for _, other in sorted(ranked)[:count]]
