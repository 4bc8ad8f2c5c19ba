"""Partial answers, clocks and series that end."""

from __future__ import annotations

import asyncio
import itertools
import time
from email.utils import formatdate

from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    running,
    settled,
)
from tests.adapter.pipeline.sources.prometheus.queriedengine import (
    GROUPS,
    PATH,
    by_query,
    live,
    matrix,
    now_series,
    options,
    state,
)


async def test_samples_of_a_failed_group_keep_their_times(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = by_query({"UTIL": live("UTIL"), "USED": live("USED")})
    source = PrometheusSource(options(web), sink, GROUPS)
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = by_query({"UTIL": answer(b"", "500 No"), "USED": live("USED")})
        await settled(lambda: state(source, "usage").failures >= 2)
        seen = len(sink.results)
        await sink.until(lambda: len(sink.results) > seen + 1)
    rows = {row.name: row.time for row in sink.results[-1].samples}
    before = {row.name: row.time for row in sink.results[-2].samples}
    assert rows["UTIL"] == before["UTIL"]
    assert rows["USED"] > before["USED"]
    assert sink.forgotten == []


async def test_an_exporter_that_left_prometheus_is_dropped(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = live("UTIL")
    async with running(PrometheusSource(options(web), sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = answer(matrix())
        await sink.until(lambda: len(sink.forgotten) > 0)
    assert sink.forgotten == ["gpu-1:9400"]


async def test_a_partial_answer_is_counted_and_drops_no_exporter(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = live("UTIL")
    source = PrometheusSource(options(web), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = answer(matrix(warnings=["store eu-1 is down"]))
        await settled(lambda: source.warnings >= 2)
        assert state(source, "usage").warnings == ("store eu-1 is down",)
    assert sink.forgotten == []
    assert sink.results[-1].origin == "gpu-1:9400"


async def test_samples_from_before_the_clock_was_set_back_are_dropped(
    web: Web, sink: Recorder
) -> None:
    behind = [0.0]
    web.replies[PATH] = live("UTIL")
    source = PrometheusSource(
        options(web), sink, {"usage": ("UTIL",)}, clock=lambda: time.time() - behind[0]
    )
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = answer(matrix(warnings=["store eu-1 is down"]))
        await settled(lambda: source.warnings >= 2)
        assert sink.forgotten == []
        behind[0] = 3600.0
        await sink.until(lambda: len(sink.forgotten) > 0)
    assert sink.forgotten == ["gpu-1:9400"]


async def test_an_empty_partial_answer_is_reported_with_its_reason(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = answer(matrix(warnings=["store eu-1 is down"]))
    source = PrometheusSource(options(web), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").partial)
        assert "a partial answer: store eu-1 is down" in (source.problem(time.time()) or "")
        web.replies[PATH] = live("UTIL", more={"warnings": ["store eu-1 is down"]})
        await sink.until(lambda: len(sink.results) > 0)
        assert source.problem(time.time()) is None


async def test_a_partial_answer_to_an_aggregation_is_rejected(web: Web, sink: Recorder) -> None:
    """A sum over the reachable stores is too small and would cause a scale-in."""
    web.replies[PATH] = live("UTIL")
    made = options(web, query={"usage": "sum by (namespace, pod) (UTIL)"})
    source = PrometheusSource(made, sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        web.replies[PATH] = answer(matrix(now_series("UTIL", "0.5"), warnings=["store is down"]))
        await settled(lambda: source.failures["partial"] >= 2)
        assert "a partial answer (store is down)" in state(source, "usage").last_error
    assert {row.value for result in sink.results for row in result.samples} == {1.0}
    assert sink.forgotten == []


async def test_the_samples_of_a_refused_answer_come_with_the_next_answer(
    web: Web, sink: Recorder
) -> None:
    began = time.time()
    labels = {"__name__": "UTIL", "instance": "gpu-1:9400"}
    samples = [[began - age, str(age)] for age in (30, 20, 10)]
    refused = matrix({"metric": labels, "values": samples[:2]}, warnings=["store is down"])
    web.replies[PATH] = answer(refused)
    made = options(web, query={"usage": "sum by (namespace, pod) (UTIL)"})
    source = PrometheusSource(made, sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: source.failures["partial"] > 0)
        web.replies[PATH] = answer(matrix({"metric": labels, "values": samples}))
        await sink.until(lambda: len(sink.results) > 0)
    assert [row.value for row in sink.results[0].samples] == [30.0, 20.0, 10.0]


async def test_kept_samples_of_a_failing_group_age_even_if_the_engine_clock_is_ahead(
    web: Web, sink: Recorder
) -> None:
    """Its samples are in our future: without its ``Date``, they would count as new each round."""
    ahead = 600.0
    series = now_series("USED")
    series["values"] = [[time.time() + ahead - 1, "100"]]
    stamp = f"Date: {formatdate(time.time() + ahead, usegmt=True)}\r\n"
    web.replies[PATH] = by_query(
        {
            "UTIL": live("UTIL"),
            "USED": in_turn(answer(matrix(series), headers=stamp), answer(b"", "500 Failed")),
        }
    )
    source = PrometheusSource(options(web, lookback=3.0), sink, GROUPS)
    began = time.time()
    async with running(source.run):
        await sink.until(lambda: any(used(result) for result in sink.results))
        (row,) = next(rows for result in sink.results if (rows := used(result)))
        assert began - 3 < row.time < time.time()
        # It is delivered again with its time while it is within the age limit.
        await sink.until(lambda: not used(sink.results[-1]))
    assert {row.time for result in sink.results for row in used(result)} == {row.time}


async def test_two_engines_behind_one_address_have_separate_clocks(
    web: Web, sink: Recorder
) -> None:
    ahead = 600.0
    series = now_series("UTIL")
    series["values"] = [[time.time() + ahead - 1, "40"]]
    body, headed = matrix(series), asyncio.Event()

    async def slow(_: Request, writer: asyncio.StreamWriter) -> None:
        date = formatdate(time.time() + ahead, usegmt=True)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nDate: {date}\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        headed.set()
        await settled(lambda: state(source, "memory").last_success > 0)
        writer.write(body)
        await writer.drain()

    async def right(request: Request, writer: asyncio.StreamWriter) -> None:
        await headed.wait()
        await asyncio.sleep(0.1)  # the date of the other engine arrives first
        stamp = f"Date: {formatdate(time.time(), usegmt=True)}\r\n"
        await answer(matrix(now_series("USED")), headers=stamp)(request, writer)

    web.replies[PATH] = by_query({"UTIL": slow, "USED": right})
    source = PrometheusSource(options(web, interval=600.0), sink, GROUPS)
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert all(row.time <= time.time() for result in sink.results for row in result.samples)


def in_turn(first: Reply, after: Reply) -> Reply:
    replies = itertools.chain((first,), itertools.repeat(after))

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        await next(replies)(request, writer)

    return reply


def used(result: ScrapeResult) -> list[Sample]:
    return [row for row in result.samples if row.name == "USED"]
