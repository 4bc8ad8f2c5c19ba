"""Settings: latency promises."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from adapter.config.settings.types import ADVANCED, Section

_CONFIGMAP = re.compile(r"([^/\s]+/[^/\s]+)?")


def _configmap(text: str) -> str:
    if not _CONFIGMAP.fullmatch(text):
        raise ValueError("must be NAMESPACE/NAME of a ConfigMap, or empty")
    return text


class PromisesSettings(Section):
    """Latency promises, on which HPAs scale with ``inference_slo_ratio``: see
    docs/inference.md."""

    configmap: Annotated[str, AfterValidator(_configmap), ADVANCED] = ""
    """``NAMESPACE/NAME`` of a ConfigMap that keeps over a restart which load keeps a promise, and
    shares it between replicas. It must exist. If the key is empty, a restart forgets it.
    The chart sets this key, creates the ConfigMap and grants the right to read and update it."""
