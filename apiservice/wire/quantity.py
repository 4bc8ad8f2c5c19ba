"""Kubernetes quantities in milli precision (apimachinery ``resource.Quantity``).

Values are whole thousandths because the HPA reads them so (``MilliValue()``): serving loses no
precision that the HPA would compare.
"""

from __future__ import annotations

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = ("m", "", "k", "M", "G", "T", "P", "E")


def to_milli(value: float) -> int:
    """Return the value in thousandths, rounded to nearest: a ceiling would give 301m for 0.1+0.2.

    Raises:
        ValueError: NaN, infinite, or too large for an int64 of thousandths. Such a value must be
            left out: clients could not parse it, and would reject the whole list.
    """
    # ``MilliValue()`` is an int64. The comparison is also false for NaN.
    if not -9.2e15 < value < 9.2e15:
        message = f"{value} is not a quantity: it must be finite and below 9.2e15"
        raise ValueError(message)
    # Exact beyond 2**53 thousandths, where the product of floats is not.
    whole = int(value)
    return whole * 1000 if whole == value else round(value * 1000)


def format_milli(milli: int) -> str:
    """Return the canonical text of a number of thousandths: factors of 1000 become a suffix."""
    if milli == 0:
        return "0"
    power = 0
    while milli % 1000 == 0 and power < len(_SUFFIXES) - 1:
        milli //= 1000
        power += 1
    return f"{milli}{_SUFFIXES[power]}"


def format_binary(milli: int) -> str:
    """Return the canonical text of bytes in thousandths: factors of 1024 become a suffix.

    Small numbers, and those with a fraction, have the decimal form.
    """
    if abs(milli) < 1024 * 1000 or milli % 1000:
        return format_milli(milli)
    whole, power = milli // 1000, 0
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY[power]}"
