"""external.metrics.k8s.io."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from adapter.settings.types import Section

_SERVICE = re.compile(r"([^/\s]+/[^/\s]+)?")


def _service(text: str) -> str:
    if not _SERVICE.fullmatch(text):
        raise ValueError("must be NAMESPACE/NAME of a Service, or empty")
    return text


class ExternalSettings(Section):
    """The external metrics API, beside the custom one: see docs/external-metrics.md."""

    enabled: bool = False
    """Serve ``external.metrics.k8s.io`` too. A cluster has one server of it: leave it off where
    KEDA, or any other, has it."""
    service: Annotated[str, AfterValidator(_service)] = ""
    """``NAMESPACE/NAME`` of the Service that the APIService should point to. If it points to
    another, that is logged and ``gma_external_foreign`` is 1. Empty: nobody looks. The chart
    sets it. Reading the APIService needs a right, which the chart gives."""
