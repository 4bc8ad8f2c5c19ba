"""A page's words as a label value that a Kubernetes selector can name.

``metric.selector`` of an HPA is a LabelSelector: blanks, slashes and what is longer than 63
bytes are refused before they are compared. So ``NVIDIA H100 80GB HBM3`` is selected as
``NVIDIA-H100-80GB-HBM3``, which is also how GPU-feature-discovery writes it into the node
label ``nvidia.com/gpu.product`` (NVIDIA/k8s-device-plugin, ``internal/lm/resource.go``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 63
_REMEMBERED: Final = 128
"""Characters of a text whose label value is remembered; a UUID of a MIG instance has 50."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_. -]")
_JOINTS: Final = str.maketrans("/+", "..")
"""``UUID/7`` and ``1g.10gb+me``, as the device plugin spells that profile in a resource."""
_ENDS: Final = "-_. "


def label_value(text: str) -> str:
    """The nearest valid label value; of a text that is too long, its last part."""
    return _remembered(text) if len(text) <= _REMEMBERED else _label_value(text)


def _label_value(text: str) -> str:
    found = _valid(text)
    if len(found) > _LONGEST:
        found = _valid(text.rpartition("/")[2])[-_LONGEST:].strip(_ENDS)
    return found


_remembered = lru_cache(maxsize=4096)(_label_value)
"""At most 4 MB, because long texts are not kept."""


def _valid(text: str) -> str:
    kept = _FOREIGN.sub("", text.translate(_JOINTS)).strip(_ENDS)
    return "-".join(kept.split())
