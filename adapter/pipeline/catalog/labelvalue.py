"""Convert text from a page to a label value that a Kubernetes selector can contain.

``metric.selector`` of an HPA is a LabelSelector, which rejects blanks, slashes and values of more
than 63 bytes. So ``NVIDIA H100 80GB HBM3`` is selected as ``NVIDIA-H100-80GB-HBM3``. This is also
how GPU-feature-discovery writes the node label ``nvidia.com/gpu.product``
(NVIDIA/k8s-device-plugin, ``internal/lm/resource.go``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 63
_REMEMBERED: Final = 128
"""Longest text, in characters, whose label value is cached; a MIG instance's UUID has 50."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_. -]")
_VALID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_JOINTS: Final = str.maketrans("/+", "..")
"""For ``UUID/7`` and ``1g.10gb+me``; the device plugin replaces ``+`` in the same way."""
_ENDS: Final = "-_. "


def label_value(text: str) -> str:
    """Return the nearest valid label value; for a text that is too long, that of its end."""
    return _remembered(text) if len(text) <= _REMEMBERED else _label_value(text)


def _label_value(text: str) -> str:
    if _VALID.fullmatch(text):
        return text
    value = _valid_text(text)
    if len(value) > _LONGEST:
        value = _valid_text(text.rpartition("/")[2])[-_LONGEST:].strip(_ENDS)
    return value


_remembered = lru_cache(maxsize=4096)(_label_value)
"""Uses at most 4 MB, because long texts are not cached."""


def _valid_text(text: str) -> str:
    cleaned = _FOREIGN.sub("", text.translate(_JOINTS)).strip(_ENDS)
    return "-".join(cleaned.split())
