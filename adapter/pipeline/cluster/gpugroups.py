"""GPU groups: pods that KAI-Scheduler or Run:ai put on one GPU, each with a fraction of it.

The spec of such a pod requests no device. A reservation pod on the node requests it for the group,
so device plugin and exporter know only that pod. The scheduler writes the label on all of them
(kai-scheduler/KAI-Scheduler ``pkg/common/constants``: ``GPUGroup``, and
``MultiGpuGroupLabelPrefix`` for a pod with fractions of several devices).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GROUP_LABEL: Final = "runai-gpu-group"
_SEVERAL: Final = f"{GROUP_LABEL}/"


def groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the GPU groups of a pod with these labels, sorted."""
    names = {value for key, value in labels.items() if key == GROUP_LABEL}
    names |= {value for key, value in labels.items() if key.startswith(_SEVERAL)}
    return tuple(sorted(names - {""}))
