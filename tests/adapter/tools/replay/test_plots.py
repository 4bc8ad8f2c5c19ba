"""Plots of a replay: what is drawn, and what is not."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.replay.plots import Line, Mark, over_time, scatter


def paths(svg: str) -> list[str]:
    return list(re.findall(r'<path class="\w+" d="([^"]*)"', svg))


def test_a_line_is_drawn_in_steps() -> None:
    svg = over_time("t", [Line("a", "now", [(0, 0.0), (50, 5.0), (100, 5.0)])])
    assert paths(svg) == ["M56.0 228.0H500.0V12.0H944.0"]


def test_a_time_without_a_value_is_a_gap() -> None:
    points = [(0, 5.0), (25, None), (75, None), (100, 5.0)]
    assert paths(over_time("t", [Line("a", "now", points)])) == ["M56.0 12.0H278.0M944.0 12.0"]


@pytest.mark.parametrize(
    "points", [[], [(0, 1.0)], [(0, None), (1, None)]], ids=["none", "one", "no value"]
)
def test_too_little_data_makes_no_plot(points: list[tuple[float, float | None]]) -> None:
    assert over_time("t", [Line("a", "now", points)]) == ""


def test_a_long_line_keeps_the_extremes_of_each_column_of_pixels() -> None:
    points = [
        (float(time), 100.0 if time == 50_001 else float(time % 2)) for time in range(100_000)
    ]
    (path,) = paths(over_time("t", [Line("a", "now", points)]))
    assert "V12.0" in path
    assert len(path) < 60_000


def test_points_at_one_place_share_a_name() -> None:
    svg = scatter("t", [Mark("a", "now", 5, 1), Mark("b", "other", 5, 1)], "x", "y")
    assert svg.count("<circle") == 1
    assert ">a, b</text>" in svg


def test_names_of_close_points_do_not_overlap() -> None:
    marks = [Mark(f"target {target}", "other", target, 0) for target in (77, 78, 79, 80)]
    svg = scatter("t", marks, "GPU-hours", "y")
    heights = re.findall(r'<text class="name" x="[\d.]+" y="([\d.]+)">', svg)
    assert len(set(heights)) == 4
    axis = re.search(r'y="([\d.]+)" text-anchor="end">GPU-hours', svg)
    assert axis is not None
    assert all(abs(float(height) - float(axis[1])) >= 14 for height in heights)


def test_names_are_text() -> None:
    name = '"><script>alert(1)</script>'
    line = over_time(name, [Line(name, "now", [(0, 1.0), (1, 2.0)])], [(name, "limit", 1.0)])
    for svg in (line, scatter(name, [Mark(name, "now", 1, 1)], name, name)):
        assert "<script" not in svg
        ElementTree.fromstring(svg)


@given(
    st.lists(
        st.tuples(st.floats(0, 4e9), st.none() | st.floats(0, 1e9, allow_subnormal=False)),
        max_size=30,
    )
)
def test_any_line_is_well_formed_and_inside_of_the_frame(
    points: list[tuple[float, float | None]],
) -> None:
    svg = over_time("t", [Line("a", "now", sorted(points, key=lambda point: point[0]))])
    if not svg:
        return
    ElementTree.fromstring(svg)
    for number in re.findall(r"-?[\d.]+", " ".join(paths(svg))):
        assert -0.1 <= float(number) <= 960.1
