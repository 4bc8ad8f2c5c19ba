"""The number columns of rows that a test writes as texts: ``31.2/80Gi`` stands for two amounts.

The server writes texts from numbers. A test's row is short, so here the numbers follow the texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from apiservice.view.resource import ViewResource

_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def amount(text: str) -> float:
    """``87%``; ``<0.1`` is half of what it is below."""
    return 0.05 if text.startswith("<") else float(text.rstrip("%WC"))


def seconds(text: str) -> float:
    """``3m20s``."""
    parts = re.findall(r"(\d+)([smhd])", text)
    assert parts, text
    return float(sum(int(number) * _SECONDS[unit] for number, unit in parts))


def used(text: str) -> float:
    """``31.2/80Gi`` -> the first amount."""
    first, _, _ = text.partition("/")
    unit = re.sub(r"[\d./<]", "", text)
    return amount(first.removesuffix(unit)) * 1024.0 ** _UNITS.index(unit)


def total(text: str) -> float | None:
    """``31.2/80Gi`` -> the second amount."""
    _, _, second = text.partition("/")
    return used(second) if second else None


def number_names(resource: ViewResource) -> list[str]:
    """The number columns of a resource, in the order of a table."""
    return [number for column in resource.columns for number in column.numbers]


def number_cells(resource: ViewResource, texts: Mapping[str, Any]) -> list[float | None]:
    """The numbers of a row, from its texts by column."""
    cells: list[float | None] = []
    for column in resource.columns:
        text = texts.get(column.name)
        cells += [None if text is None else _OF[number](text) for number in column.numbers]
    return cells


_OF: Final[Mapping[str, Callable[[Any], float | None]]] = {
    "Util-Percent": amount,
    "Fragmented-Percent": amount,
    "Max-Percent": amount,
    "Mem-Bytes": used,
    "Mem-Total-Bytes": total,
    "Age-Seconds": seconds,
    "Idle-Seconds": seconds,
    "Window-Seconds": seconds,
    "Power-Watts": amount,
    "Temp-Celsius": amount,
    "XID-Code": amount,
    "Waiting-Requests": amount,
    "Running-Requests": amount,
    "Devices-Measured": lambda text: int(text.partition("/")[0]),
    "Devices-Requested": lambda text: int(text.rpartition("/")[2]),
    "Wants-Replicas": int,
}
