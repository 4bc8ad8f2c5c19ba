"""The sweeps as a picture: what less waiting costs in GPU-hours."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from load.nodepoolsweep import OURS, SHARE, STATIC, Cost, Result

_STYLES: Final = {
    STATIC: ("static, so many GPUs", "#9a9a9a", "s"),
    SHARE: ("static, a share of the pods", "#d08a2e", "^"),
    OURS: ("ours, by quantile", "#1f6fb4", "o"),
}
_COLUMNS: Final = 3
_COLOURS: Final = 64
_DEAREST: Final = 150
"""Percent of the reactive GPU-hours; what lies beyond is of no interest."""


def draw(results: Sequence[Result], path: Path) -> None:
    """Write one panel for each result as a PNG."""
    rows = -(-len(results) // _COLUMNS)
    figure = Figure(figsize=(10, 2.9 * rows), layout="constrained")
    grid = figure.subplots(rows, _COLUMNS, squeeze=False)
    panels = [panel for row in grid for panel in row]
    for panel, result in zip(panels, results, strict=False):
        _panel(panel, result)
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.supxlabel("GPU-hours, percent of the reactive autoscaler's", fontsize=10)
    figure.supylabel("pending pod-seconds, percent of the reactive autoscaler's", fontsize=10)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=72)
    # A few dozen colours are all there are; as a palette the file is a third as large.
    Image.open(picture).convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def _panel(panel: Axes, result: Result) -> None:
    panel.axvspan(98, 110, ymax=0.5 / 1.05, color="#dff0df", zorder=0, label="goal")
    for family, (label, colour, marker) in _STYLES.items():
        points = [
            Cost(100.0, 100.0),
            *(
                cost.beside(result.reactive)
                for setting, cost in result.swept.items()
                if setting.family == family
            ),
        ]
        panel.plot(
            [point.gpu_hours for point in points],
            [point.pending for point in points],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.3,
            label=label,
        )
    oracle = result.oracle.beside(result.reactive)
    panel.plot(100, 100, "kx", label="reactive", linestyle="none")
    panel.plot(oracle.gpu_hours, oracle.pending, "k*", label="oracle", linestyle="none")
    panel.set_xlim(98, _DEAREST)
    panel.set_ylim(-3, 105)
    panel.grid(alpha=0.25)
    panel.set_title(f"{result.trace} (tuned on)" if result.tuned_on else result.trace, fontsize=10)
