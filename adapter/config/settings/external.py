"""Settings: the external metrics API (external.metrics.k8s.io)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from adapter.config.settings.types import ADVANCED, Section

_SERVICE = re.compile(r"([^/\s]+/[^/\s]+)?")


def _service(text: str) -> str:
    if not _SERVICE.fullmatch(text):
        raise ValueError("must be NAMESPACE/NAME of a Service, or empty")
    return text


class ExternalSettings(Section):
    """The external metrics API: see docs/external-metrics.md."""

    enabled: bool = False
    """Serve ``external.metrics.k8s.io``. A cluster has one server of it: leave it off if KEDA
    provides it."""
    service: Annotated[str, AfterValidator(_service), ADVANCED] = ""
    """``NAMESPACE/NAME`` of the Service that the APIService should point to. If it does not,
    ``gma_external_other_adapter`` is 1. The chart sets this key."""
