"""The last half hour of each HPA in ``top``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.config.process.output import Screen
from adapter.figures import LEVELS
from adapter.tools.client.access import cluster
from adapter.tools.client.histories import HpaPast
from adapter.tools.top.facts import ClusterLists, ReadScope, look
from adapter.tools.top.summaries import tables_of
from adapter.tools.top.tables import last_minutes
from apiservice.wire import instant
from tests.adapter.clientapi import api_server, forbidden
from tests.adapter.tools.top.cluster import AT, facts

PATH = "/apis/view.gpu-metrics-adapter.io/v1alpha1/gpuhistories"


def past(*values: float | None, ends: float = AT) -> HpaPast:
    """One point a minute, the last one just before the end."""
    times = [ends - 1 - 60 * ago for ago in reversed(range(len(values)))]
    points = list(values)
    return HpaPast("gpu_utilization", times, points, points, points, points, [None] * len(points))


def test_a_character_is_the_highest_value_of_two_minutes() -> None:
    assert last_minutes(past(10, 80, 40, 40, 0, 0), AT) == " " * 12 + "█▅▁"


def test_minutes_without_a_value_are_blank_and_no_zero() -> None:
    assert last_minutes(past(80, None, None, None, 80, 80), AT) == " " * 12 + "█ █"
    assert last_minutes(past(None, None), AT) is None
    assert last_minutes(None, AT) is None


def test_a_value_that_is_always_0_is_drawn_as_0() -> None:
    assert last_minutes(past(*[0.0] * 30), AT) == "▁" * 15


def test_minutes_before_the_last_half_hour_are_left_out() -> None:
    assert last_minutes(past(*[1000.0] * 40, *[50.0] * 30), AT) == "█" * 15


def test_a_terminal_without_blocks_draws_with_ascii() -> None:
    assert Screen(unicode=False).line(LEVELS) == "_.,-=+*#"


def test_the_list_of_hpas_has_the_past_of_each() -> None:
    lists = replace(facts(), pasts={("chat", "llm"): past(*[70.0] * 30)})
    (table,) = tables_of("hpas", lists, everywhere=True)
    place = table.index("LAST-30-MIN")
    cells = {(row.key.namespace, row.key.name): row.cells[place] for row in table.rows}
    assert cells.pop(("chat", "llm")) == "█" * 15
    assert set(cells.values()) == {None}


def _history() -> dict[str, object]:
    return {
        "metadata": {"name": "horizontalpodautoscaler.llm", "namespace": "chat"},
        "of": "HorizontalPodAutoscaler",
        "metric": "gpu_utilization",
        "start": instant.write(time.time() - 120),
        "intervalSeconds": 60,
        **{key: [1, None] for key in ("value", "target", "current", "desired")},
        "state": ["healthy", None],
    }


async def test_the_past_is_read_once_a_minute(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[PATH] = [_history()]
        async with cluster(file) as api:
            first = await look(api, ReadScope(), ["gpuhistories"], ClusterLists())
            again = await look(api, ReadScope(), ["gpuhistories"], first)
            later = replace(again, pasts_at=time.time() - 61)
            await look(api, ReadScope(), ["gpuhistories"], later)
    assert (first.problems, again.problems) == ({}, {})
    assert first.pasts is not None
    assert first.pasts["chat", "llm"].value == [1, None]
    assert again.pasts is first.pasts
    requests = [request for request in server.asked if PATH in request]
    assert len(requests) == 2
    assert "of=HorizontalPodAutoscaler" in requests[0]


async def test_a_past_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        group = "view.gpu-metrics-adapter.io"
        server.answers[PATH] = forbidden("ana", "list", "gpuhistories", group, "")
        async with cluster(file) as api:
            lists = await look(api, ReadScope(), ["gpuhistories"], ClusterLists())
    assert "gpuhistories" in str(lists.problems["gpuhistories"])
    assert lists.pasts is None


async def test_an_adapter_that_keeps_no_past_makes_no_problem(tmp_path: Path) -> None:
    with api_server(tmp_path) as (_, file):
        async with cluster(file) as api:
            lists = await look(api, ReadScope(), ["gpuhistories"], ClusterLists())
    assert (lists.problems, lists.pasts) == ({}, {})


@pytest.mark.parametrize(
    "bent",
    [{"value": ["x", None]}, {"start": 7}, {"metadata": []}],
    ids=["text", "start", "metadata"],
)
async def test_a_past_of_another_form_is_one_line(tmp_path: Path, bent: dict[str, object]) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[PATH] = {"items": [_history() | bent]}
        async with cluster(file) as api:
            lists = await look(api, ReadScope(), ["gpuhistories"], ClusterLists())
    assert "gpuhistories has another form" in str(lists.problems["gpuhistories"])


@pytest.mark.parametrize(
    "odd",
    [{"start": "yesterday"}, {"value": [1]}, {"value": [], "target": []}],
    ids=["time", "length", "empty"],
)
async def test_points_that_do_not_fit_together_are_left_out(
    tmp_path: Path, odd: dict[str, object]
) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[PATH] = [_history() | odd]
        async with cluster(file) as api:
            lists = await look(api, ReadScope(), ["gpuhistories"], ClusterLists())
    assert (lists.problems, lists.pasts) == ({}, {})
