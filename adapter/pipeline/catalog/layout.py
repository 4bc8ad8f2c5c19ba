"""The column layout of a device's history: which column holds which field."""

from __future__ import annotations

from functools import lru_cache
from math import nan

from adapter.pipeline.catalog.field import Spelling


class Layout:
    """The fields of the columns. All devices whose exporters report the same fields share one."""

    __slots__ = ("columns", "exact", "missing", "of_field", "width")

    def __init__(self, columns: tuple[Spelling, ...]) -> None:
        self.columns = columns
        self.width = len(columns)
        self.missing = (nan,) * len(columns)
        self.exact = any(column.field.exact for column in columns)
        """Some columns describe the container, not the device."""
        self.of_field: dict[str, tuple[int, ...]] = {}
        for i, column in enumerate(columns):
            self.of_field[column.field.name] = (*self.of_field.get(column.field.name, ()), i)


@lru_cache(maxsize=512)
def layout(columns: tuple[Spelling, ...]) -> Layout:
    """Return the layout of these columns; equal columns share one object."""
    return Layout(columns)
