"""Settings: what `serve` keeps over a restart."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from adapter.config.settings.types import ADVANCED, Interval, Section

_CONFIGMAP = re.compile(r"([^/\s]+/[^/\s]+)?")


def _configmap(text: str) -> str:
    if not _CONFIGMAP.fullmatch(text):
        raise ValueError("must be NAMESPACE/NAME of a ConfigMap, or empty")
    return text


class MemorySettings(Section):
    """What `serve` keeps over a restart, and shares between its replicas: which load keeps a
    latency promise (docs/inference.md), and the loads of workloads (docs/ahead.md). A change of
    this section needs a restart."""

    configmap: Annotated[str, AfterValidator(_configmap), ADVANCED] = ""
    """``NAMESPACE/NAME`` of a ConfigMap, which must exist. If empty, a restart forgets what was
    learned. The chart sets this key, and creates the ConfigMap."""
    interval: Annotated[Interval, Field(ge=15), ADVANCED] = 300
    """Seconds between two reads of the ConfigMap, each followed by a write if more is known."""
