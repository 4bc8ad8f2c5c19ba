"""Rows of a table by column, and names in the order in which people read them."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.nodelabels import pool
from adapter.tools.client.tables import ObjectTable, TableRow
from adapter.tools.overview.columns import Columns, natural_key

ROWS = [TableRow("a", "", {}, ["a", 3]), TableRow("b", "", {}, ["b", None])]
TABLE = ObjectTable(("Name", "Pods"), ROWS)


def test_a_column_that_the_server_does_not_have_is_empty() -> None:
    by = Columns(TABLE)
    assert by.cells("Pods") == [3, None]
    assert by.texts("Pods") == ["3", None]
    assert by.cells("Util") == [None, None]
    assert by.dicts() == [{"Name": "a", "Pods": 3}, {"Name": "b", "Pods": None}]


def test_names_with_numbers_are_sorted_by_the_numbers_and_missing_ones_are_last() -> None:
    names = ["n10.gpu1", None, "n2.gpu10", "n2.gpu9", "", "x", "²"]
    assert sorted(names, key=natural_key) == ["", "n2.gpu9", "n2.gpu10", "n10.gpu1", "x", "²", None]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"karpenter.sh/nodepool": "a"}, "a"),
        ({"karpenter.sh/nodepool": "", "cloud.google.com/gke-nodepool": "b"}, "b"),
        ({"zone": "z"}, None),
    ],
)
def test_the_pool_is_that_of_the_providers_label(labels: dict[str, str], found: str | None) -> None:
    assert pool(labels) == found
