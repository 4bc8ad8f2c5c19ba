"""The drawing of dashboards: what is there is shown, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from charts.generate.dashboard import OPERATORS_BOARD, WORKLOADS_BOARD, dashboard
from tests.charts.drawing import Samples, height, page, shape
from tests.charts.picture import DOCS

MODEL = dashboard(WORKLOADS_BOARD)


def nothing(expr: str) -> Sequence[tuple[Mapping[str, str], Samples]]:
    return []


def ones(expr: str) -> Sequence[tuple[Mapping[str, str], Samples]]:
    return [({"namespace": "<ml>"}, [(0.0, 1.0), (2.0, 1.0), (60.0, 1.0)])]


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


def test_collapsed_rows_can_be_opened() -> None:
    model = dashboard(OPERATORS_BOARD)
    assert "Boot time by node pool" not in page(model, nothing)
    assert "Boot time by node pool" in page(model, nothing, opened=True)
    assert height(model, opened=True) > height(model)


@pytest.mark.parametrize("name", ["workloads", "adapter"])
def test_the_pictures_of_the_guide_are_small(name: str) -> None:
    picture = (DOCS / f"dashboard-{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000
    assert f"(dashboard-{name}.png)" in (DOCS / "observability.md").read_text(encoding="utf-8")
