"""Each text of a number in a table is written from the number that is sent beside it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.tables import TablePage, decode_table
from apiservice.view.cells import RowWriter
from apiservice.view.options import TableOptions, table_options
from apiservice.view.presentation import presentation
from apiservice.view.resource import Column, RawCell, ServedResource, ViewGroup, ViewResource
from apiservice.wire.accept import Form
from tests.adapter.answers.view.viewer import Shelf, Viewer, prepare
from tests.adapter.tablenumbers import number_names
from tests.adapter.world import World, make_pod

NOW = 100.0
RESOURCES = {resource.plural: resource for resource in (GPUS, GPUPODS, GPUWORKLOADS)}
TWO = {"nvidia.com/gpu": 2}
VALUES = st.one_of(
    st.floats(0, 1e12), st.floats(0, 300), st.sampled_from([0.0, 0.04, 0.05, 9.95, 119.9996])
)


def check_law(resource: ViewResource, page: TablePage) -> int:
    """Check that each text is that of its numbers; return the number of texts."""
    checked = 0
    for row in page.rows:
        cells = dict(zip(page.columns, row.cells, strict=True))
        for column in resource.columns:
            if column.write is None:
                continue
            numbers = [cells[number] for number in column.numbers]
            if cells[column.name] is None:
                assert set(numbers) == {None}
            else:
                assert cells[column.name] == column.write(*numbers)
                checked += 1
    return checked


def sent(shelf: Shelf, *, numbers: bool) -> bytes:
    """The table of every object, as a client gets it."""
    served = ServedResource(shelf.resource, shelf.provider)
    form, options = Form("Table", "v1", "meta.k8s.io"), TableOptions(numbers=numbers)
    presented = presentation(ViewGroup("a", "v1", (served,)), served, form, options, NOW)
    keys = shelf.listed()
    prepare(shelf.provider, keys, NOW)
    rows = [row for key in keys if (row := presented.render(key)) is not None]
    return presented.body({}, rows)


def viewer() -> Viewer:
    world = World(
        make_pod("llm-0", node="n1"), make_pod("llm-1", node="n1", gpus=TWO), make_pod("x")
    )
    page = "".join(
        f'{field}{{gpu="{number}",UUID="GPU-{number}",modelName="NVIDIA H100",Hostname="n1",'
        f'namespace="ml",pod="llm-{number}",container="a"}} {value}\n'
        for number, load in enumerate((87.4, 0.02))
        for field, value in (
            ("DCGM_FI_DEV_GPU_UTIL", load),
            ("DCGM_FI_DEV_FB_USED", 31987.0),
            ("DCGM_FI_DEV_FB_FREE", 49567.0),
            ("DCGM_FI_DEV_POWER_USAGE", 351.7),
            ("DCGM_FI_DEV_GPU_TEMP", 61.0),
        )
    )
    world.scrape(page, NOW - 3, node="n1")
    return Viewer(world)


def cell_of(column: Column) -> st.SearchStrategy[Any]:
    """What a provider may return for a column."""
    if column.write is None:
        return st.one_of(st.none(), st.text(max_size=3).filter("<none>".__ne__))
    if len(column.numbers) == 1:
        return st.one_of(st.none(), VALUES)
    return st.one_of(st.none(), st.tuples(*[st.integers(0, 10**12) for _ in column.numbers]))


@pytest.mark.parametrize("plural", RESOURCES)
@given(data=st.data())
def test_a_text_is_that_of_the_number_beside_it(plural: str, data: st.DataObject) -> None:
    resource = RESOURCES[plural]
    cells: tuple[RawCell, ...] = data.draw(st.tuples(*map(cell_of, resource.columns)))
    names = ["Name", *(column.name for column in resource.columns), *number_names(resource)]
    row = {
        "cells": RowWriter(resource.columns, numbers=True).row("a", cells),
        "object": {"metadata": {"name": "a"}},
    }
    body = {"kind": "Table", "columnDefinitions": [{"name": name} for name in names], "rows": [row]}
    check_law(resource, decode_table(msgspec.json.encode(body)))


@pytest.mark.parametrize("shelf", ["gpus", "pods", "workloads"])
def test_the_numbers_of_a_cluster_are_those_of_its_texts(shelf: str) -> None:
    shown: Shelf = getattr(viewer(), shelf)
    page = decode_table(sent(shown, numbers=True))
    assert check_law(shown.resource, page) > 1
    util = dict(zip(page.columns, page.rows[0].cells, strict=True))["Util-Percent"]
    assert util in (87.4, 43.71)


@pytest.mark.parametrize("shelf", ["gpus", "pods", "workloads"])
def test_numbers_are_sent_on_request_only_and_kubectl_hides_them(shelf: str) -> None:
    shown: Shelf = getattr(viewer(), shelf)
    plain, more = (msgspec.json.decode(sent(shown, numbers=on)) for on in (False, True))
    count = len(shown.resource.columns) + 1
    assert [len(row["cells"]) for row in plain["rows"]] == [count] * len(plain["rows"])
    assert [row["cells"][:count] for row in more["rows"]] == [row["cells"] for row in plain["rows"]]
    assert more["columnDefinitions"][:count] == plain["columnDefinitions"]
    added = more["columnDefinitions"][count:]
    assert [column["name"] for column in added] == number_names(shown.resource) != []
    assert {(column["type"], column["priority"]) for column in added} == {("number", 1)}
    assert table_options({"numbers": "true"}).numbers
    assert not table_options({}).numbers
    assert not table_options({"numbers": "false"}).numbers


@pytest.mark.parametrize("plural", RESOURCES)
def test_a_column_has_numbers_and_how_they_are_written_or_neither(plural: str) -> None:
    columns = RESOURCES[plural].columns
    assert all(bool(column.numbers) == (column.write is not None) for column in columns)
    names = [*(column.name for column in columns), *number_names(RESOURCES[plural])]
    assert len(set(names)) == len(names)
