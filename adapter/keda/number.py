"""Numbers as KEDA takes them: thousandths, never NaN, infinite or negative.

KEDA's operator turns a float into thousandths (``pkg/scalers/scaler.go``), older ones by
cutting off what is below one: 1.001 times 1000 is 1000.9999999999999, and became 1.000. So
a number is sent as the float that gives its own thousandths either way.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from apiservice.wire.quantity import to_milli

MAX_MILLI: Final = 2**63 - 1
"""What the HPA's arithmetic holds."""


class Number(NamedTuple):
    """Both forms of a number, as the messages have them."""

    whole: int
    """For KEDA that does not know the float: rounded, yet 0 only where that is the value."""
    exact: float
    """Used by KEDA where it is above 0."""


def number(value: float) -> Number:
    """The forms of a finite ``value``; a negative one is 0, as KEDA itself would have it."""
    milli = min(to_milli(max(0.0, value)), MAX_MILLI)
    exact = milli / 1000
    if int(exact * 1000) < milli:
        exact = math.nextafter(exact, math.inf)
    return Number(max(1, round(exact)) if milli else 0, exact)
