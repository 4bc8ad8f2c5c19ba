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
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_. -]")
_JOINTS: Final = str.maketrans("/+", "..")
"""``UUID/7`` and ``1g.10gb+me``, as the device plugin spells that profile in a resource."""
_ENDS: Final = "-_. "


@lru_cache(maxsize=65536)
def label_value(text: str) -> str:
    """The nearest valid label value; of a text that is too long, its last part."""
    found = _valid(text)
    if len(found) > _LONGEST:
        found = _valid(text.rpartition("/")[2])[-_LONGEST:].strip(_ENDS)
    return found


def _valid(text: str) -> str:
    kept = _FOREIGN.sub("", text.translate(_JOINTS)).strip(_ENDS)
    return "-".join(kept.split())
