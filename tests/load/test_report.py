"""Results as text."""

from __future__ import annotations

import pytest

from load.report import MarkerError, figure, markdown, replace
from load.table import Goal, Table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(12345.6, "12,346", id="thousands are grouped"),
        pytest.param(123.4, "123", id="three digits are enough"),
        pytest.param(7.0, "7.00", id="small numbers keep their digits"),
        pytest.param(0.01234, "0.0123", id="smaller ones too"),
        pytest.param(0.0, "0", id="nothing"),
    ],
)
def test_a_figure_has_about_three_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_table_is_markdown_with_its_goals_and_notes() -> None:
    table = Table(
        ("server", "requests/s"),
        (("serve", "1,000"), ("a|b", "10")),
        (Goal("fast", "100x", met=True), Goal("small", "200 MB", met=False)),
        ("All on one machine.",),
    )
    assert markdown(table) == (
        "| server | requests/s |\n"
        "| --- | ---: |\n"
        "| serve | 1,000 |\n"
        "| a\\|b | 10 |\n"
        "\n"
        "| goal | measured | |\n"
        "| --- | --- | --- |\n"
        "| fast | 100x | met |\n"
        "| small | 200 MB | **missed** |\n"
        "\n"
        "All on one machine."
    )


def test_a_row_must_fit_its_columns() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table(("a", "b"), (("x",),))


def test_only_the_text_between_the_markers_is_replaced() -> None:
    document = "a\n<!-- begin x -->\nold\nlines\n<!-- end x -->\nb\n"
    assert replace(document, "x", "new \\1") == (
        "a\n<!-- begin x -->\nnew \\1\n<!-- end x -->\nb\n"
    )


def test_a_missing_marker_is_named() -> None:
    with pytest.raises(MarkerError, match="<!-- begin y -->"):
        replace("<!-- begin x -->\n<!-- end x -->", "y", "new")
