"""Kubernetes quantities in milli precision (apimachinery ``resource.Quantity``).

Values travel as whole thousandths because that is what the HPA reads (``MilliValue()``):
nothing is lost between what is served and what is compared.
"""

from __future__ import annotations

LIMIT = 9_200_000_000_000_000_000
"""Thousandths. ``MilliValue()`` is an int64; a value of 9.2e15 or more would overflow it."""

_SUFFIXES = ("m", "", "k", "M", "G", "T", "P", "E")


def to_milli(value: float) -> int:
    """The value in thousandths, rounded to nearest (a ceiling would turn 0.1+0.2 into 301m).

    Raises:
        ValueError: NaN, infinite, or too large for an int64 of thousandths. Such a value
            has to be left out: it would not parse, and would poison its whole list.
    """
    # The comparison is false for NaN too.
    if not -9.2e15 < value < 9.2e15:
        message = f"{value} is no quantity: it must be finite and below 9.2e15"
        raise ValueError(message)
    # Exact beyond 2**53 thousandths, where the product of floats is not.
    whole = int(value)
    return whole * 1000 if whole == value else round(value * 1000)


def format_milli(milli: int) -> str:
    """The canonical text of so many thousandths: factors of 1000 become a suffix."""
    if milli == 0:
        return "0"
    power = 0
    while milli % 1000 == 0 and power < len(_SUFFIXES) - 1:
        milli //= 1000
        power += 1
    return f"{milli}{_SUFFIXES[power]}"
