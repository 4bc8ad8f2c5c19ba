"""The sweeps as a picture: what less waiting costs in GPU-hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from io import BytesIO
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from research.ablation import NEAR as _BAND
from research.ablation import SLOT, ColdStart
from research.sweep import OURS, SHARE, STATIC, Cost, Result

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
    save(figure, path)


def _panel(panel: Axes, result: Result) -> None:
    panel.axvspan(98, 110, ymax=0.5 / 1.05, color="#dff0df", zorder=0, label="goal")
    for family, (label, colour, marker) in _STYLES.items():
        points = [
            Cost(100.0, 100.0),
            *(
                cost.percent_of(result.reactive)
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
    oracle = result.oracle.percent_of(result.reactive)
    panel.plot(100, 100, "kx", label="reactive", linestyle="none")
    panel.plot(oracle.gpu_hours, oracle.pending, "k*", label="oracle", linestyle="none")
    panel.set_xlim(98, _DEAREST)
    panel.set_ylim(-3, 105)
    panel.grid(alpha=0.25)
    panel.set_title(f"{result.trace} (tuned on)" if result.tuned_on else result.trace, fontsize=10)


def draw_calibration(
    nominal: Sequence[float], held_rates: Mapping[str, Sequence[float]], tuned: Set[str], path: Path
) -> None:
    """Write how often forecasts held against how often they should, one line for each trace."""
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    panel = figure.subplots()
    stated = [100 * probability for probability in nominal]
    low, high = ([percent + sign * _BAND for percent in stated] for sign in (-1, 1))
    panel.fill_between(stated, low, high, color="#dff0df", label=f"within {_BAND} points")
    panel.plot(stated, stated, color="#707070", linewidth=1)
    for name, rates in held_rates.items():
        panel.plot(
            stated,
            [100 * rate for rate in rates],
            marker="o",
            markersize=3,
            linewidth=1.2,
            linestyle="--" if name in tuned else "-",
            label=f"{name} (used to fit)" if name in tuned else name,
        )
    panel.set_xlabel("stated probability, %")
    panel.set_ylabel("minutes in which the forecast held, %")
    panel.grid(alpha=0.25)
    figure.legend(loc="outside right upper", fontsize=7, frameon=False)
    save(figure, path)


def draw_cold_start(cold: ColdStart, path: Path) -> None:
    """Write waiting and cost in the first hours without history."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, values, label in (
        (panels[0], cold.waits, "pending pod-seconds"),
        (panels[1], cold.bills, "GPU-hours"),
    ):
        for family, points in values.items():
            text, colour, marker = _STYLES[family]
            middles = [SLOT * (index + 0.5) for index in range(len(points))]
            panel.plot(middles, points, color=colour, marker=marker, markersize=4, label=text)
        panel.set_xlabel("minutes since the start")
        panel.set_ylabel(f"{label}, percent of reactive's")
        panel.set_ylim(bottom=0, top=1.1 * panel.get_ylim()[1])
        panel.grid(alpha=0.25)
    panels[0].legend(fontsize=8)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a small PNG."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=72)
    # A few dozen colours are all there are; as a palette the file is a third as large.
    Image.open(picture).convert("RGB").quantize(_COLOURS).save(path, optimize=True)
