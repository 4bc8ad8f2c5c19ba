"""Exposition text written from rows: the other direction of
:mod:`adapter.pipeline.exposition.page`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from adapter.pipeline.exposition.samples import Sample


def render(rows: Iterable[Sample], scraped: float) -> bytes:
    """A page in text format 0.0.4; a row measured at another time than ``scraped`` is stamped."""
    return "".join(line(row, scraped) for row in rows).encode()


def line(row: Sample, scraped: float) -> str:
    """One sample line."""
    stamp = "" if row.time == scraped else f" {round(row.time * 1000)}"
    labels = f"{{{label_text(row.labels)}}}" if row.labels else ""
    return f"{row.name}{labels} {number(row.value)}{stamp}\n"


def label_text(labels: Mapping[str, str]) -> str:
    """What stands between the braces."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def escaped(value: str) -> str:
    """A label value as the format writes it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A number as Go writes it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
