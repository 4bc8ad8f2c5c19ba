"""Which field of a device's values is in which column."""

from __future__ import annotations

from functools import lru_cache
from math import nan

from adapter.catalog.field import Spelling


class Layout:
    """Which column holds what; shared by every device whose exporter writes the same."""

    __slots__ = ("columns", "exact", "missing", "of_field", "width")

    def __init__(self, columns: tuple[Spelling, ...]) -> None:
        self.columns = columns
        self.width = len(columns)
        self.missing = (nan,) * len(columns)
        self.exact = any(column.field.exact for column in columns)
        """Some are the container's own, not the device's."""
        self.of_field: dict[str, tuple[int, ...]] = {}
        for i, column in enumerate(columns):
            self.of_field[column.field.name] = (*self.of_field.get(column.field.name, ()), i)


@lru_cache(maxsize=512)
def layout(columns: tuple[Spelling, ...]) -> Layout:
    """The layout of these columns, one object for all who have them."""
    return Layout(columns)
