"""Settings: replicas ahead of demand."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.config.settings.types import Section


class AheadSettings(Section):
    """Expected metrics: see docs/ahead.md. A change of this section needs a restart."""

    enabled: bool = False
    """Learn loads, and serve metrics with the suffix ``_expected``."""
    probability: Annotated[float, Field(gt=0, lt=1)] = 0.7
    """Probability that a load does not exceed what is expected of it. A higher one orders more
    replicas."""
