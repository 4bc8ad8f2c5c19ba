"""The Prometheus source against a server that simulates the query API, with and without errors."""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme
from structlog.testing import capture_logs

import adapter.sources.prometheus.source
from adapter.exposition.samples import Sample, ScrapeResult
from adapter.sources.errors import CredentialError
from adapter.sources.login.port import Basic, Bearer, BearerFile
from adapter.sources.login.tokens import CachedToken, Token
from adapter.sources.prometheus.groupstate import GroupState
from adapter.sources.prometheus.options import PrometheusOptions
from adapter.sources.prometheus.source import PrometheusSource
from apiservice.runtime.steps import Steps
from apiservice.runtime.turns import Turns
from tests.adapter.sources.conftest import (
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

PATH = "/prefix/api/v1/query"
GROUPS = {"usage": ("UTIL",), "memory": ("USED", "FREE")}


def matrix(*series: dict[str, Any], **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": list(series)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def now_series(name: str, value: str = "1", instance: str = "gpu-1:9400") -> dict[str, Any]:
    labels = {"__name__": name, "instance": instance, "gpu": "0"}
    return {"metric": labels, "values": [[time.time(), value]]}


def by_query(replies: Mapping[str, Reply]) -> Reply:
    """Chooses by a word in the query."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        query = asked(request)
        await next(chosen for word, chosen in replies.items() if word in query)(request, writer)

    return reply


def asked(request: Request) -> str:
    return parse_qs(request.body.decode())["query"][0]


def live(name: str, *, more: Mapping[str, Any] | None = None) -> Reply:
    """A series with a new sample each time."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(matrix(now_series(name), **(more or {})))(request, writer)

    return reply


def options(web: Web, **more: Any) -> PrometheusOptions:
    made = PrometheusOptions(
        web.url("/prefix/"), interval=0.02, timeout=5.0, retries=0, lookback=60.0
    )
    return replace(made, **more)


def state(source: PrometheusSource, name: str) -> GroupState:
    return next(found for found in source.groups if found.group.name == name)


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
    found = {result.origin: result for result in sink.results}
    assert sorted((row.name, row.value) for row in found["gpu-1:9400"].samples) == [
        ("USED", 100.0),
        ("UTIL", 40.0),
    ]
    assert (found["gpu-2:9400"].node, len(found["gpu-2:9400"].samples)) == (None, 1)


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

    monkeypatch.setattr(adapter.sources.prometheus.source, "Turns", lambda: Turns(seconds=0.0))
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
        found = state(source, "usage")
        assert (found.queries, found.failures, found.last_error) == (2, 0, "")
    assert source.failures == {"unavailable": 1}


async def test_an_invalid_query_is_not_retried_within_the_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(_ERROR, "400 Bad Request")
    source = PrometheusSource(options(web, retries=5, interval=60.0), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures == 1)
    assert len(web.requests) == 1


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


async def test_a_query_without_series_is_logged_once_with_a_hint(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(matrix())
    made = options(web, query={"metrics.lag": "no_such_series"})
    with capture_logs() as logs:
        async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
            await settled(lambda: len(web.requests) > 6)
    events = [(found["event"], found.get("group")) for found in logs]
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
    events = [(found["event"], found["groups"]) for found in logs]
    assert sorted(events[:2]) == [
        ("query failed", "metrics.lag"),
        ("query failed", "usage, memory"),
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
        await settled(lambda: all(found.queries for found in source.groups))
        # They end one after the other.
        await settled(lambda: len({found.failures for found in source.groups[:9]}) == 1)
    assert _names(sink) == {"UTIL", "USED"}


def _names(sink: Recorder) -> set[str]:
    return {row.name for result in sink.results[-1:] for row in result.samples}


def refusing(*refused: str) -> Reply:
    """An engine that accepts every credential except these."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.headers["authorization"] in refused:
            await answer(b"no", "401 Unauthorized")(request, writer)
        else:
            await live("UTIL")(request, writer)

    return reply


def numbered() -> Bearer:
    given = itertools.count(1)
    return Bearer(CachedToken("cloud", lambda: Token(f"t{next(given)}", time.time() + 3600)))


async def test_a_refused_token_is_replaced_within_the_round(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = refusing("Bearer t1")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert not source.failures
    shown = [request.headers["authorization"] for request in web.requests]
    assert (shown[0], set(shown[1:])) == ("Bearer t1", {"Bearer t2"})


async def test_an_engine_that_refuses_every_token_causes_one_more_token_request(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = refusing("Bearer t1", "Bearer t2")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 3)
    shown = [request.headers["authorization"] for request in web.requests]
    assert (shown[0], set(shown[1:])) == ("Bearer t1", {"Bearer t2"})


async def test_a_redirect_does_not_leak_the_token(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = answer(b"", "307 Elsewhere", headers="Location: /elsewhere\r\n")
    source = PrometheusSource(options(web, login=numbered()), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: source.failures["redirect"] >= 2)
    assert {request.line.split(" ")[1] for request in web.requests} == {PATH}


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


async def test_a_get_carries_the_query_and_the_users_parameters_in_its_url(
    web: Web, sink: Recorder
) -> None:
    web.replies[PATH] = live("UTIL")
    made = options(web, method="GET", params={"dedup": "true", "extra_label": "env=a b"})
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    method, url, _ = web.requests[0].line.split(" ")
    assert method == "GET"
    assert parse_qs(url.partition("?")[2]) == {
        "query": ["UTIL[60000ms]"],
        "timeout": ["5s"],
        "dedup": ["true"],
        "extra_label": ["env=a b"],
    }


async def test_a_post_carries_the_users_parameters_in_its_form(web: Web, sink: Recorder) -> None:
    web.replies[PATH] = live("UTIL")
    made = options(web, params={"nocache": "1", "partial_response": "false"})
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    form = parse_qs(web.requests[0].body.decode())
    assert (form["nocache"], form["partial_response"]) == (["1"], ["false"])


async def test_an_unavailable_server_is_a_problem_with_its_address(sink: Recorder) -> None:
    made = PrometheusOptions("http://127.0.0.1:1", lookback=90.0, interval=0.01, retries=0)
    source = PrometheusSource(made, sink, GROUPS)
    async with running(source.run):
        await settled(lambda: source.failures["connect"] >= 2)
    assert "http://127.0.0.1:1/api/v1/query" in (source.problem(time.time()) or "")


async def test_a_server_without_http_is_reported_without_the_parameters(
    web: Web, sink: Recorder
) -> None:
    async def greet(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-server\r\n\r\n")
        await writer.drain()

    web.replies[PATH] = greet
    source = PrometheusSource(
        options(web, method="GET", params={"key": "s3cr3t-key"}), sink, {"usage": ("UTIL",)}
    )
    async with running(source.run):
        await settled(lambda: source.failures["protocol"] >= 2)
    problem = source.problem(time.time()) or ""
    assert "ClientResponseError" in problem
    assert "s3cr3t" not in problem


async def test_an_error_with_status_200_does_not_repeat_credentials(
    web: Web, sink: Recorder
) -> None:
    said = {"status": "error", "errorType": "auth", "error": "no such key s3cr3t-key"}
    web.replies[PATH] = answer(json.dumps(said).encode())
    source = PrometheusSource(
        options(web, headers={"X-Api-Key": "s3cr3t-key"}), sink, {"usage": ("UTIL",)}
    )
    async with running(source.run):
        await settled(lambda: state(source, "usage").failures >= 1)
    assert state(source, "usage").last_error == "auth: no such key (withheld)"


async def test_every_query_has_credentials_and_headers(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    web.replies[PATH] = live("UTIL")
    password = tmp_path / "password"
    password.write_text("one\n")
    login = Basic("u", "", password)
    made = options(web, login=login, headers={"X-Scope-OrgID": "team-a"})

    def basic(secret: str) -> str:
        return "Basic " + base64.b64encode(f"u:{secret}".encode()).decode()

    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
        password.write_text("second\n")
        await settled(lambda: web.requests[-1].headers["authorization"] == basic("second"))
    assert web.requests[0].headers["authorization"] == basic("one")
    assert web.requests[0].headers["x-scope-orgid"] == "team-a"


async def test_a_bearer_token_is_read_again_and_reported_when_missing(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    web.replies[PATH] = live("UTIL")
    token = tmp_path / "token"
    token.write_text("abc")
    source = PrometheusSource(options(web, login=BearerFile(token)), sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await sink.until(lambda: len(sink.results) > 0)
        token.unlink()
        await settled(lambda: source.failures["credential"] > 0)
        assert str(token) in state(source, "usage").last_error
    assert web.requests[0].headers["authorization"] == "Bearer abc"


async def test_a_client_certificate_is_sent_and_the_ca_is_checked(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    web.replies[PATH] = live("UTIL")
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/prefix"
    ca, cert = tmp_path / "ca.crt", tmp_path / "client.pem"
    authority.cert_pem.write_to_path(str(ca))
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(cert))

    bare = PrometheusSource(options(web, url=url, ca_file=ca), sink, {"usage": ("UTIL",)})
    async with running(bare.run):
        await settled(lambda: state(bare, "usage").failures > 0)
    assert web.requests == []
    made = options(web, url=url, ca_file=ca, cert_file=cert)
    async with running(PrometheusSource(made, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    server.close()


def test_an_unusable_client_certificate_is_named(web: Web, sink: Recorder, tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match=r"client\.pem"):
        PrometheusSource(options(web, cert_file=tmp_path / "client.pem"), sink, GROUPS)


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
        (row,) = next(found for result in sink.results if (found := used(result)))
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
