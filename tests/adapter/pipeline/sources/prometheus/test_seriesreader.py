"""The reader of series that tools and controllers use: what it asks, keeps and refuses."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.login.port import Basic, BearerFile
from adapter.pipeline.sources.prometheus import seriesreader
from adapter.pipeline.sources.prometheus.answer import LATEST
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.seriesreader import SeriesReader, reader_of
from tests.adapter.pipeline.sources.conftest import Reply, Web, answer, hang, large

QUERY = "/prefix/api/v1/query"
RANGE = "/prefix/api/v1/query_range"


def answered(*result: Any, kind: str = "matrix", **more: Any) -> bytes:
    data = {"resultType": kind, "result": list(result)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def series(*values: Any, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": list(values)}


Make = Callable[..., SeriesReader]


@pytest.fixture
async def reader(web: Web) -> AsyncIterator[Make]:
    made: list[SeriesReader] = []

    def make(**more: Any) -> SeriesReader:
        made.append(reader_of(PrometheusOptions(web.url("/prefix/"), **more)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def test_a_range_is_asked_as_the_api_says(web: Web, reader: Make) -> None:
    web.replies[RANGE] = answer(answered(series([60, "1.5"], [120, "2"], __name__="up", pod="a")))
    series_answer = await reader(timeout=7.0, params={"dedup": "true"}).range("up", 60, 120, 30.0)
    (one,) = series_answer.series
    assert (one.name, one.labels, list(one.points)) == ("up", {"pod": "a"}, [(60, 1.5), (120, 2)])
    assert (series_answer.partial, dict(series_answer.left_out)) == ("", {})
    (request,) = web.requests
    assert parse_qs(request.body.decode()) == {
        "query": ["up"],
        "start": ["60"],
        "end": ["120"],
        "step": ["30"],
        "timeout": ["7s"],
        "dedup": ["true"],
    }


async def test_an_instant_query_may_be_a_get(web: Web, reader: Make) -> None:
    web.replies[QUERY] = answer(answered({"metric": {}, "value": [60, "3"]}, kind="vector"))
    series_answer = await reader(method="GET").instant('sum(up{a="b c"})')
    assert list(series_answer.series[0].points) == [(60, 3)]
    line = web.requests[0].line
    assert line.startswith("GET ")
    asked = parse_qs(line.split(" ")[1].partition("?")[2])
    assert asked["query"] == ['sum(up{a="b c"})']


async def test_every_query_has_the_login_and_the_headers(
    web: Web, reader: Make, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("token-of-a-file")
    web.replies[QUERY] = answer(answered())
    headers = {"X-Scope-OrgID": "blue"}
    await reader(login=BearerFile(tmp_path / "token"), headers=headers).instant("up")
    await reader(login=Basic("user", "word")).instant("up")
    shown = [request.headers.get("authorization", "") for request in web.requests]
    assert shown[0] == "Bearer token-of-a-file"
    assert shown[1].startswith("Basic ")
    assert web.requests[0].headers["x-scope-orgid"] == "blue"


async def test_a_netrc_and_a_proxy_of_the_environment_are_not_used(
    web: Web, reader: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login eve password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    web.replies[QUERY] = answer(answered())
    await reader().instant("up")
    assert "authorization" not in web.requests[0].headers


async def test_what_cannot_be_a_sample_is_left_out_and_counted(web: Web, reader: Make) -> None:
    web.replies[QUERY] = answer(
        answered(
            series([60, "1"], [61, "abc"], [62, "1_0"], [LATEST + 1, "1"], [-1, "1"], pod="a"),
            series([60, "NaN"], [61, "+Inf"], pod="b"),
            series([60, "2"], pod="a"),
            {"metric": {"pod": "c"}, "histograms": [[60, {"count": "1"}], [61, {}]]},
            {"metric": {"pod": "d"}, "values": [["noon", "1"]]},
            {"metric": {"pod": 1}, "values": [[60, "1"]]},
            "text",
            warnings=["PromQL warning: ignored"],
        )
    )
    series_answer = await reader().instant("up[1h]")
    assert [one.labels["pod"] for one in series_answer.series] == ["a", "b"]
    assert list(series_answer.series[0].points) == [(60, 1)]
    assert len(series_answer.series[1].points) == 2
    assert series_answer.left_out == {
        "bad_value": 4,
        "duplicate_series": 1,
        "histogram": 2,
        "bad_series": 3,
    }
    assert series_answer.partial == ""


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"isPartial": True}, "the engine says so"),
        ({"warnings": ["store 10.0.0.1 is unavailable"]}, "store 10.0.0.1 is unavailable"),
    ],
)
async def test_a_partial_answer_says_so(web: Web, reader: Make, more: Any, why: str) -> None:
    web.replies[QUERY] = answer(answered(series([60, "1"]), **more))
    assert (await reader().instant("up")).partial == why


NESTED = b'{"status":"success","data":{"resultType":"matrix","result":%b}}'
BAD: dict[str, tuple[Reply, str, str]] = {
    "html": (answer(b"<html>login</html>"), "not_json", "begins '<html>login"),
    "an error with 200": (
        answer(b'{"status":"error","errorType":"timeout","error":"it took\\nlong"}'),
        "query",
        "timeout: it took long",
    ),
    "422": (
        answer(b'{"status":"error","errorType":"execution","error":"bad"}', "422 X"),
        "query",
        "HTTP status 422: execution: bad",
    ),
    "302": (answer(b"", "302 X", headers="Location: /\r\n"), "redirect", "not followed"),
    "401": (answer(b"no", "401 X"), "denied", "check the token"),
    "a scalar": (answer(answered(60, "1", kind="scalar")), "result_type", "a scalar"),
    "not UTF-8": (
        answer(NESTED % b'[{"metric":{"a":"\xff"},"values":[[1,"1"]]}]'), "not_json", "utf-8"
    ),
    "deep": (answer(NESTED % (b"[" * 5000 + b"]" * 5000)), "not_json", "recursion"),
    "deep, in a series": (
        answer(NESTED % (b'[{"metric":{},"x":' + b"[" * 990 + b"]" * 990 + b"}]")),
        "not_json",
        "recursion",
    ),
    "cut": (answer(answered(series([1, "1"]))[:-5]), "not_json", "truncated"),
    "less than promised": (answer(b"{", length=100), "truncated", "incomplete"),
    "a bomb": (
        large(
            lambda: answer(gzip.compress(b" " * (2 << 20)), headers="Content-Encoding: gzip\r\n")
        ),
        "too_large",
        "above 1048576 bytes",
    ),
    "long": (large(lambda: answer(b" " * (2 << 20))), "too_large", "above 1048576 bytes"),
    "hang": (hang, "timeout", "no answer in time"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_answer_is_one_line(web: Web, reader: Make, name: str) -> None:
    reply, reason, text = BAD[name]
    web.replies[QUERY] = web.replies[RANGE] = reply
    made = reader(max_bytes=1 << 20, timeout=0.2 if name == "hang" else 60.0)
    for asked in (made.instant("up"), made.range("up", 0, 60, 15)):
        with pytest.raises(SourceError) as caught:
            await asked
        assert caught.value.reason == reason
        assert text in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("bound", "part", "text"),
    [
        ("MOST_PARTS", b"[]", "over 1000 labels and samples"),
        ("MOST_OBJECTS", b'{"":{}}', "over 500 series"),
    ],
)
async def test_an_answer_of_too_many_parts_is_not_decoded(
    bound: str,
    part: bytes,
    text: str,
    web: Web,
    reader: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``[],[],[]`` takes twenty times its bytes in memory."""
    monkeypatch.setattr(seriesreader, bound, 1000)
    web.replies[QUERY] = answer(NESTED % (b"[" + b",".join([part] * 2000) + b"]"))
    with pytest.raises(SourceError, match=text):
        await reader().instant("up")


async def test_a_login_that_an_answer_repeats_is_withheld(
    web: Web, reader: Make, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("token-of-a-file")
    web.replies[QUERY] = answer(b'{"status":"error","error":"bad token-of-a-file"}')
    with pytest.raises(SourceError, match="withheld") as caught:
        await reader(login=BearerFile(tmp_path / "token")).instant("up")
    assert "token-of-a-file" not in str(caught.value)


async def test_a_query_that_is_cancelled_ends_its_thread(web: Web, reader: Make) -> None:
    arrived = asyncio.Event()

    async def wait(*_: Any) -> None:
        arrived.set()
        await asyncio.Event().wait()

    web.replies[QUERY] = wait
    task = asyncio.create_task(reader(timeout=600.0).instant("up"))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        await asyncio.get_running_loop().shutdown_default_executor()
