"""What is believed of a device's fields, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Doubt(StrEnum):
    """Why a field is not believed; what it is counted under."""

    ZERO_UTIL = "util_zero_while_active"
    IDLE_POWER = "util_high_at_idle_power"
    STUCK = "profiling_stuck_at_zero"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is believed of a device. Immutable."""

    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    """Field -> why it is not believed."""
    since: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(Field, suspicion) -> epoch seconds since when it stands without a break."""


CLEAR: Final = Verdict()
