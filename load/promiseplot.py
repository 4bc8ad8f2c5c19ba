"""The sweeps of ``promises`` as a picture: what fewer missed requests cost in GPU-hours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from load.promisepolicies import FAMILIES, ORACLE, OURS, RECIPE
from load.promises import Result, best_settings, reference
from research.plot import save

_STYLES: Final = {OURS: ("#1f6fb4", 2.2), RECIPE: ("#d08a2e", 2.2), ORACLE: ("#000000", 1.4)}
_COLUMNS: Final = 3


def draw(results: Sequence[Result], path: Path) -> None:
    """Write one panel for each play as a PNG."""
    rows = -(-len(results) // _COLUMNS)
    figure = Figure(figsize=(11, 3.2 * rows), layout="constrained")
    panels = [panel for row in figure.subplots(rows, _COLUMNS, squeeze=False) for panel in row]
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    for panel, result in zip(panels, results, strict=False):
        for name in FAMILIES:
            points = best_settings(result.swept[name])
            colour, width = _STYLES.get(name, (f"C{2 + list(FAMILIES).index(name)}", 0.9))
            style = "-" if name in _STYLES else "--"
            hours, missed = [p.gpu_hours for p in points], [p.missed for p in points]
            panel.plot(hours, missed, style, marker="o", ms=3, lw=width, color=colour, label=name)
        panel.axvline(reference(result), color="#9a9a9a", lw=0.7)
        panel.set_ylim(-0.5, 20)
        panel.set_xlim(0, 2.2 * reference(result))
        panel.grid(alpha=0.25)
        panel.set_title(result.name + " (held out)" * result.held_out, fontsize=10)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.supxlabel("GPU-hours")
    figure.supylabel("requests that miss the promise, %")
    save(figure, path)
