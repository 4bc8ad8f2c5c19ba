"""Writes the pages that are generated from the code (``make docs``). A test compares them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from charts.generate import dashboard, defaults, readme, schema
from docs import checks, codemap, metricspage, reasonpage, selfmetrics, settingspage

FOLDER = Path(__file__).parent


PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks.page,
    "code-map.md": codemap.page,
    "settings.md": settingspage.page,
    "metrics.md": metricspage.page,
    "reasons.md": reasonpage.page,
    "self-metrics.md": selfmetrics.page,
    **{f"../charts/gpu-metrics-adapter/{name}": page for name, page in dashboard.pages().items()},
    "../charts/gpu-metrics-adapter/files/defaults.yaml": defaults.page,
    "../charts/gpu-metrics-adapter/values.schema.json": schema.page,
    "../charts/gpu-metrics-adapter/README.md": readme.page,
}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
