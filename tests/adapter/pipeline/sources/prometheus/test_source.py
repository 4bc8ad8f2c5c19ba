"""The Prometheus source against a server that simulates the query API, with and without errors."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest
from structlog.testing import capture_logs

import adapter.pipeline.sources.prometheus.source
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from apiservice.runtime.steps import Steps
from apiservice.runtime.turns import Turns
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Request,
    Web,
    answer,
    drip,
    hang,
    large,
    running,
    settled,
)
from tests.adapter.pipeline.sources.prometheus.queriedengine import (
    GROUPS,
    PATH,
    asked,
    by_query,
    live,
    matrix,
    now_series,
    options,
    state,
)


async def test_a_round_is_one_post_per_group_and_one_result_per_exporter(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = by_query(
        {
            "UTIL": answer(matrix(now_series("UTIL", "40"), now_series("UTIL", "7", "gpu-2:9400"))),
            "USED": answer(matrix(now_series("USED", "100"))),
        }
    )
    source = PrometheusSource(options(web, interval=600.0), sink, GROUPS)
    async with running(source.run):
        await sink.until(lambda: len(sink.results) == 2)
        assert source.problem(time.time()) is None
        assert state(source, "usage").samples == 2
    assert [request.line for request in web.requests] == [f"POST {PATH} HTTP/1.1"] * 2
    assert sorted(map(asked, web.requests)) == [
        "UTIL[60000ms]",
        '{__name__=~"USED|FREE"}[60000ms]',
    ]
    results = {result.origin: result for result in sink.results}
    assert sorted((row.name, row.value) for row in results["gpu-1:9400"].samples) == [
        ("USED", 100.0),
        ("UTIL", 40.0),
    ]
    assert (results["gpu-2:9400"].node, len(results["gpu-2:9400"].samples)) == (None, 1)


async def test_other_tasks_run_while_a_large_answer_is_ingested(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = 0
    seen: list[int] = []

    class Slow(Recorder):
        def steps(self, result: ScrapeResult) -> Steps[None]:
            for _ in range(20):
                seen.append(ticks)
                yield
            self.ingest(result)

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(
        adapter.pipeline.sources.prometheus.source, "Turns", lambda: Turns(seconds=0.0)
    )
    web.replies[PATH] = live("UTIL")
    sink = Slow()
    source = PrometheusSource(options(web, interval=60.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        other = asyncio.create_task(tick())
        await sink.until(lambda: bool(sink.results))
        other.cancel()
    assert len(set(seen)) == 20


async def test_a_user_query_replaces_the_query_of_a_group_or_adds_one(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = live("UTIL")
    query = {"usage": "my_util", "extra": 'label_replace(q,"__name__","QUEUE","","")'}
    source = PrometheusSource(options(web, query=query, interval=600.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert sorted(map(asked, web.requests)) == [query["extra"], query["usage"]]


_GZIP = "Content-Encoding: gzip\r\n"
_SMALL = 1_000_000
_ERROR = b'{"status":"error","errorType":"bad_data","error":"unknown function"}'
BAD = [
    pytest.param(answer(b"<html><body>Sign in</body></html>"), "not_json", "Sign in", id="html"),
    pytest.param(answer(_ERROR, "400 Bad Request"), "query", "unknown function", id="400"),
    pytest.param(answer(_ERROR), "query", "unknown function", id="status error"),
    pytest.param(answer(_ERROR, "422 What"), "query", "unknown function", id="422"),
    pytest.param(answer(b"", "404 Not Found"), "status", "path prefix", id="404"),
    pytest.param(answer(b"no", "401 Unauthorized"), "denied", "token", id="401"),
    pytest.param(answer(b"no", "403 Forbidden"), "denied", "tenant", id="403"),
    pytest.param(answer(b"", "502 Bad Gateway"), "unavailable", "502", id="502"),
    pytest.param(answer(b"", "429 Slow down"), "unavailable", "429", id="429"),
    pytest.param(
        answer(b"", "301 Moved", headers="Location: /x\r\n"), "redirect", "URL", id="redirect"
    ),
    pytest.param(answer(b""), "not_json", "path prefix", id="empty"),
    pytest.param(large(lambda: answer(b" " * 50_000_000)), "too_large", "1000000", id="50 MB"),
    pytest.param(
        large(lambda: answer(gzip.compress(b" " * 50_000_000), headers=_GZIP)),
        "too_large",
        "1000000",
        id="bomb",
    ),
    pytest.param(answer(b"{}", length=500), "truncated", "incomplete", id="connection cut"),
    pytest.param(answer(b"\x00\xff", headers=_GZIP), "encoding", "gzip", id="not gzip"),
]


@pytest.mark.parametrize(("reply", "reason", "said"), BAD)
async def test_one_failed_group_does_not_lose_the_others(
    web: Web, sink: Recorder, reply: Reply, reason: str, said: str
) -> None:
    web.replies[PATH] = by_query({"UTIL": reply, "USED": live("USED")})
    source = PrometheusSource(options(web, max_bytes=_SMALL), sink, GROUPS)
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 2)
        seen = len(sink.results)
        await sink.until(lambda: len(sink.results) > seen)
        failed = state(source, "usage")
        assert (failed.reason, failed.last_success) == (reason, 0.0)
        assert said in failed.last_error
        assert source.failures[reason] >= 2
        assert source.problem(time.time()) is None
    assert {row.name for result in sink.results for row in result.samples} == {"USED"}


@pytest.mark.parametrize("reply", [hang, drip])
async def test_a_hanging_server_times_out(web: Web, sink: Recorder, reply: Reply) -> None:
    web.replies[PATH] = by_query({"UTIL": reply, "USED": live("USED")})
    source = PrometheusSource(options(web, timeout=0.05, interval=0.2), sink, GROUPS)
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 1)
        await sink.until(lambda: len(sink.results) > 0)
        assert state(source, "usage").reason == "timeout"


async def test_strings_and_nan_affect_only_themselves(web: Web, sink: Recorder) -> None:
    good, odd = now_series("UTIL", "40"), now_series("UTIL", "NaN", "nan")
    word = now_series("UTIL", "many", "word")
    web.replies[PATH] = answer(matrix(good, odd, word))
    source = PrometheusSource(options(web, interval=600.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) == 2)
    assert [result.origin for result in sink.results] == ["gpu-1:9400", "nan"]
    assert [dict(result.rejects) for result in sink.results] == [{"bad_value": 1}, {}]


async def test_a_temporary_failure_is_retried_within_the_round(web: Web, sink: Recorder) -> None:
    async def once(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(b"", "503 Service Unavailable")(request, writer)
        web.replies[PATH] = live("UTIL")

    web.replies[PATH] = once
    source = PrometheusSource(options(web, retries=1, interval=60.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        usage = state(source, "usage")
        assert (usage.queries, usage.failures, usage.last_error) == (2, 0, "")
    assert source.failures == {"unavailable": 1}


async def test_a_query_that_fails_is_tried_three_times_in_a_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(b"", "503 Service Unavailable")
    chosen = options(web, interval=60.0, retries=2)
    source = PrometheusSource(chosen, sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures > 0)
        assert state(source, "usage").queries == 3
    assert source.failures == {"unavailable": 3}
    assert sink.results == []


async def test_an_invalid_query_is_not_retried_within_the_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(_ERROR, "400 Bad Request")
    source = PrometheusSource(options(web, retries=5, interval=60.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures == 1)
    assert len(web.requests) == 1


async def test_a_query_without_series_is_logged_once_with_a_hint(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(matrix())
    made = options(web, query={"metrics.lag": "no_such_series"})
    with capture_logs() as logs:
        async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
            await settled(lambda: len(web.requests) > 6)
    events = [(line["event"], line.get("group")) for line in logs]
    assert sorted(events) == [("no series at all", None), ("query gives no series", "metrics.lag")]


async def test_an_engine_that_fails_every_group_is_logged_in_one_line(
    web: Web, sink: Recorder
) -> None:
    bad = answer(_ERROR, "400 Bad Request")
    away = answer(b"", "503 Away")
    web.replies[PATH] = by_query({"lag": bad, "UTIL": away, "USED": away})
    source = PrometheusSource(options(web, query={"metrics.lag": "lag("}), sink, GROUPS)
    with capture_logs() as logs:
        async with running(source.run):
            await settled(lambda: state(source, "metrics.lag").failures >= 3)
            web.replies[PATH] = by_query({"lag": bad, "UTIL": live("UTIL"), "USED": live("USED")})
            await settled(lambda: not state(source, "usage").last_error)
            await settled(lambda: not state(source, "memory").last_error)
            await settled(lambda: len(logs) > 2)
    events = [(line["event"], line["groups"]) for line in logs]
    assert sorted(events[:2]) == [
        ("query failed", "metrics.lag"),
        ("query failed", "usage and memory"),
    ]
    assert {event for event, _ in events[2:]} == {"query answered again"}


async def test_a_round_that_runs_out_of_time_is_counted(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = hang
    made = options(web, timeout=0.2, interval=0.2, retries=5)
    source = PrometheusSource(made, sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures > 0)
        assert source.failures["timeout"] > 0
        assert state(source, "usage").reason == "timeout"


async def test_hanging_queries_do_not_extend_a_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = by_query({"slow": hang, "UTIL": live("UTIL"), "USED": live("USED")})
    slow = {f"metrics.{number}": f"slow_{number}" for number in range(9)}
    made = options(web, timeout=0.3, interval=0.3, query=slow)
    source = PrometheusSource(made, sink, {**dict.fromkeys(slow, ("x",)), **GROUPS})
    async with running(source.run):
        await sink.until(lambda: _names(sink) == {"UTIL", "USED"})
        await settled(lambda: all(group.queries for group in source.groups))
        # They end one after the other.
        await settled(lambda: len({group.failures for group in source.groups[:9]}) == 1)
    assert _names(sink) == {"UTIL", "USED"}


def _names(sink: Recorder) -> set[str]:
    return {row.name for result in sink.results[-1:] for row in result.samples}


async def test_a_query_that_drops_the_name_is_logged_with_a_hint(web: Web, sink: Recorder) -> None:
    unnamed = {"metric": {"instance": "gpu-1:9400"}, "values": [[time.time(), "1"]]}
    web.replies[PATH] = answer(matrix(unnamed))
    made = options(web, query={"memory": "sum by (instance) (USED)"})
    source = PrometheusSource(made, sink, {"memory": ("USED", "FREE")})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        problem = source.problem(time.time()) or ""
    assert sink.results[0].rejects == {"unnamed_series": 1}, "counted without any row"
    assert "query.memory: 1 series without a name" in problem
    assert "by (__name__, ...)" in problem
