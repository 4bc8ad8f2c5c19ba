"""The drawing of dashboards: what is there is shown, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from charts.generate.dashboard import BOARDS, dashboard
from tests.charts.drawing import Line, Samples, buckets, height, page, shape
from tests.charts.picture import DOCS, GUIDE

MODEL = dashboard("hpas")


def nothing(expr: str) -> Sequence[tuple[Mapping[str, str], Samples]]:
    return []


def ones(expr: str) -> Sequence[tuple[Mapping[str, str], Samples]]:
    return [({"namespace": "<ml>", "le": "0.5"}, [(0.0, 1.0), (2.0, 1.0), (60.0, 1.0)])]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "percentunit", "50 %"),
        (80, "percent", "80 %"),
        (1240, "watt", "1.24 kW"),
        (20000, "mbytes", "19.5 GiB"),
        (1.41e9, "hertz", "1.41 GHz"),
        (0, "bytes", "0 B"),
        (90, "s", "1.5 min"),
        (0.0042, "s", "4.2 ms"),
        (3, "none", "3"),
    ],
)
def test_a_value_has_its_unit(value: float, unit: str, text: str) -> None:
    assert shape(value, unit) == text


def test_a_panel_without_data_says_so() -> None:
    shown = [panel for panel in MODEL["panels"] if panel["type"] != "row"]
    assert page(MODEL, nothing).count("No data") == len(shown)


def test_data_is_drawn_with_a_gap_where_there_is_one() -> None:
    text = page(MODEL, ones)
    assert "No data" not in text
    assert "needs a look" in text
    assert "<ml>" not in text, "texts are escaped"
    way = text.partition('<path d="')[2].partition('"')[0]
    assert (way.count("M"), way.count("L")) == (2, 1)


@pytest.mark.parametrize("name", BOARDS)
def test_every_type_of_panel_is_drawn(name: str) -> None:
    assert "No data" not in page(dashboard(name), ones, opened=True)


def test_a_heatmap_of_a_histogram_has_what_is_in_each_bucket() -> None:
    lines = [Line("+Inf", [(0.0, 7.0)]), Line("0.5", [(0.0, 2.0)]), Line("1", [(0.0, 6.0)])]
    assert buckets(lines) == [(0.5, {0.0: 2.0}), (1.0, {0.0: 4.0}), (math.inf, {0.0: 1.0})]


def test_collapsed_rows_can_be_opened() -> None:
    model = dashboard("adapter")
    assert "Data in memory" not in page(model, nothing)
    assert "Data in memory" in page(model, nothing, opened=True)
    assert height(model, opened=True) > height(model)


@pytest.mark.parametrize("name", GUIDE)
def test_the_pictures_of_the_guide_are_small(name: str) -> None:
    picture = (DOCS / f"dashboard-{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000
    assert f"(dashboard-{name}.png)" in (DOCS / "observability.md").read_text(encoding="utf-8")
