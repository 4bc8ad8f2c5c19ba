"""Parsing of a Kubernetes quantity into a number, as apimachinery's ``resource.Quantity`` does.

The client library has a parser too, but importing it loads every API of the client, which takes
longer and more memory than the rest of this package.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal

_FORM = re.compile(
    r"([+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d{1,2})?)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?",
    re.ASCII,
)
"""Longer exponents are rejected: a quantity is below 2**63, and ``1e999999`` takes long."""
_LONGEST = 256
"""Characters of a quantity. No number below 2**63 needs a tenth of them."""
_FACTORS = {suffix: Decimal(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)}
_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)}
_FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)}


def parse(quantity: object) -> Decimal:
    """Return the number of a quantity in a manifest or an API response.

    Args:
        quantity: text such as ``70``, ``500m``, ``2Gi``, or the number that YAML parsed.

    Raises:
        ValueError: it is not a quantity.
    """
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        raise ValueError(f"{quantity!r} is not a quantity")
    if isinstance(quantity, str) and len(quantity) > _LONGEST:
        raise ValueError(f"{quantity[:20]!r}… is not a quantity: it has {len(quantity)} characters")
    # The text of a float is what the manifest had; its exact value is not.
    match = _FORM.fullmatch(str(quantity))
    if not match:
        raise ValueError(f"{quantity!r} is not a quantity")
    number, suffix = match.groups()
    if suffix and ("e" in number or "E" in number):
        raise ValueError(f"{quantity!r} has an exponent and a suffix")
    return Decimal(number) * _FACTORS.get(suffix or "", Decimal(1))


def to_milli(quantity: Decimal) -> int:
    """Return ``Quantity.MilliValue()``: thousandths, rounded away from zero."""
    return int((quantity * 1000).to_integral_value(ROUND_UP))
