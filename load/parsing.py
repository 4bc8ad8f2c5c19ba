"""Reading an exporter's page, beside prometheus_client's parser."""

from __future__ import annotations

from load import parse
from load.report import figure
from load.table import Goal, Run, Table

_TITLES = {
    "prometheus_client": "prometheus_client.parser",
    "cold": "adapter.exposition, an exporter's first page",
    "warm": "adapter.exposition, every later page",
}


def parsing(run: Run) -> Table:
    """Medians over many parses of one page in one process."""
    del run
    body = parse.page(bare=True)
    measured = parse.measure(body)
    peer = measured[0].megabytes_per_second
    rows = tuple(
        (
            _TITLES[item.name],
            figure(item.micros),
            figure(item.megabytes_per_second),
            figure(item.megabytes_per_second / peer) + "x",
        )
        for item in measured
    )
    ratio = measured[-1].megabytes_per_second / peer
    return Table(
        ("parser", "µs a page", "MB/s", "ratio"),
        rows,
        (Goal("at least 20 times prometheus_client.parser", f"{ratio:.1f}x", ratio >= 20),),
        (f"The page: {len(body) / 1000:.0f} kB, 8 GPUs x {len(parse.FIELDS)} fields.",),
    )
