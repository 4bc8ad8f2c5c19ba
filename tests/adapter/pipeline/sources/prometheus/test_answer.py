"""Queries to the query API, and how its answers are read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import error_text
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import AnswerReader, decode
from apiservice.runtime.steps import at_once

GROUP = QueryGroup("usage", ("UTIL", "MEM"))


def body(*results: Any, kind: str = "matrix", **more: Any) -> bytes:
    data = {"resultType": kind, "result": list(results)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def series(name: str, *samples: list[Any], **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": name, **labels}, "values": list(samples)}


def test_a_group_is_one_range_selector() -> None:
    assert GROUP.promql(90.0) == '{__name__=~"UTIL|MEM"}[90000ms]'
    assert GROUP.promql(0.5, 'cluster="a"') == '{__name__=~"UTIL|MEM",cluster="a"}[500ms]'


def test_a_single_series_is_queried_by_its_exact_name() -> None:
    """Google's engine accepts no other form: "PromQL compatibility", Matching on metric names."""
    group = QueryGroup("kubernetes_io:x", ("kubernetes_io:x",))
    assert group.promql(90.0) == "kubernetes_io:x[90000ms]"
    assert group.promql(90.0, 'cluster="a"') == 'kubernetes_io:x{cluster="a"}[90000ms]'


def test_a_user_query_is_sent_unchanged() -> None:
    group = QueryGroup("usage", ("UTIL",), "avg_over_time(x[1m])")
    assert group.promql(90.0, 'cluster="a"') == "avg_over_time(x[1m])"


@pytest.mark.parametrize(
    ("query", "combines"),
    [
        (None, False),
        ("queue", False),
        ('queue{a="sum(x)"}[1m]', False),
        ('{__name__=~"a|b", c=~"}"}', False),
        ("sum by (namespace, pod) (queue)", True),
        ("a / b", True),
        ("a or b", True),
        ("queue offset 5m", True),
    ],
)
def test_only_a_plain_selector_creates_no_new_values(query: str | None, *, combines: bool) -> None:
    assert QueryGroup("g", ("UTIL",), query).combines is combines


def test_a_matrix_gives_every_sample_its_own_time() -> None:
    answer = decode(
        body(series("UTIL", [1.5, "40"], [16.5, "50"], instance="a:1", gpu="0")),
        SeriesMemo(),
        GROUP,
    )
    labels = {"instance": "a:1", "gpu": "0"}
    assert answer.samples == {
        "a:1": [Sample("UTIL", labels, 40.0, 1.5), Sample("UTIL", labels, 50.0, 16.5)]
    }
    assert answer.newest == {"a:1": [Sample("UTIL", labels, 50.0, 16.5)]}


def test_a_vector_gives_one_sample() -> None:
    result = {"metric": {"__name__": "UTIL", "instance": "a"}, "value": [7, "1"]}
    answer = decode(body(result, kind="vector"), SeriesMemo(), GROUP)
    assert answer.samples == {"a": [Sample("UTIL", {"instance": "a"}, 1.0, 7.0)]}


def test_an_unnamed_result_takes_the_only_name_of_its_group() -> None:
    result = {"metric": {"instance": "a"}, "value": [7, "1"]}
    one = decode(body(result, kind="vector"), SeriesMemo(), QueryGroup("g", ("UTIL",), "q"))
    assert one.samples["a"][0].name == "UTIL"
    several = decode(body(result, kind="vector"), SeriesMemo(), GROUP)
    assert (several.samples, several.rejects) == ({}, {"unnamed_series": 1})


@pytest.mark.parametrize(
    ("labels", "origin"),
    [
        ({"instance": "a:1", "Hostname": "n"}, "a:1"),
        ({"Hostname": "n1"}, "n1"),
        ({"instance": "vllm-0:http", "namespace": "a"}, "a/vllm-0:http"),
        ({"instance": "[fe80::1]:9400", "namespace": "a"}, "[fe80::1]:9400"),
        ({"hostname": "n2"}, "n2"),
        ({"node": "n3"}, "n3"),
        ({"instance": "", "gpu": "0"}, "prometheus"),
    ],
)
def test_exporters_are_identified_by_the_best_available_label(
    labels: dict[str, str], origin: str
) -> None:
    answer = decode(body(series("UTIL", [1, "1"], **labels)), SeriesMemo(), GROUP)
    assert list(answer.samples) == [origin]


def test_special_numbers_are_passed_on_for_validation() -> None:
    answer = decode(
        body(series("UTIL", [1, "NaN"], [2, "+Inf"], [3, "-Inf"], [4, "1e3"])),
        SeriesMemo(),
        GROUP,
    )
    values = [row.value for row in answer.samples["prometheus"]]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, 1000.0]


BAD_SERIES = [
    pytest.param(series("UTIL", [1, "many"], [2, "3"]), "bad_value", 1, id="a word for a number"),
    pytest.param(series("UTIL", [1, "1_0"], [2, "3"]), "bad_value", 1, id="Python's underscore"),
    pytest.param(series("UTIL", [1, 5]), "bad_series", 0, id="a number for a text"),
    pytest.param(series("UTIL", ["x", "5"]), "bad_series", 0, id="a text for a time"),
    pytest.param({"metric": {"__name__": 5}, "values": [[1, "1"]]}, "bad_series", 0, id="name"),
    pytest.param({"metric": [], "values": [[1, "1"]]}, "bad_series", 0, id="labels are a list"),
    pytest.param({"values": [[1, "1"]]}, "bad_series", 0, id="no labels"),
    pytest.param("text", "bad_series", 0, id="no series at all"),
    pytest.param({"metric": {}, "values": [[1, "1"]]}, "unnamed_series", 0, id="no name"),
]


@pytest.mark.parametrize(("bad", "reason", "left"), BAD_SERIES)
def test_a_bad_series_affects_only_itself(bad: Any, reason: str, left: int) -> None:
    good = series("MEM", [1, "7"], instance="good")
    answer = decode(body(bad, good), SeriesMemo(), GROUP)
    assert answer.samples["good"] == [Sample("MEM", {"instance": "good"}, 7.0, 1.0)]
    assert answer.rejects == {reason: 1}
    assert sum(map(len, answer.samples.values())) == 1 + left


def test_a_native_histogram_is_ignored() -> None:
    result = {"metric": {"__name__": "UTIL"}, "histograms": [[1, {"count": "1"}]]}
    assert decode(body(result), SeriesMemo(), GROUP).samples == {}


USELESS = [
    (b"", "not_json"),
    (b"<html><title>Sign in</title></html>", "not_json"),
    (b'{"status":"success"', "not_json"),
    (b"[]", "not_json"),
    (b'"text"', "not_json"),
    (b"\xff\xfe", "not_json"),
    (b'{"status":"error","errorType":"bad_data","error":"parse error"}', "query"),
    (b'{"status":"success"}', "query"),
    (b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}', "result_type"),
    (b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}', "result_type"),
    (b'{"status":"success","data":{"resultType":"matrix","result":{}}}', "not_json"),
]


@pytest.mark.parametrize(("answer", "reason"), USELESS)
def test_an_unusable_answer_is_an_error_with_a_reason(answer: bytes, reason: str) -> None:
    with pytest.raises(SourceError) as caught:
        decode(answer, SeriesMemo(), GROUP)
    assert caught.value.reason == reason


def test_html_is_quoted_so_that_the_login_page_is_recognised() -> None:
    with pytest.raises(SourceError, match=r"Sign in.*path prefix"):
        decode(b"<html><title>Sign in</title></html>", SeriesMemo(), GROUP)


@pytest.mark.parametrize(
    ("more", "warnings", "partial"),
    [
        ({}, (), False),
        ({"warnings": ["store x is down"]}, ("store x is down",), True),
        ({"warnings": ["PromQL warning: x"]}, ("PromQL warning: x",), False),
        ({"infos": ["might not be a counter"]}, ("might not be a counter",), False),
        ({"isPartial": True}, (), True),
    ],
)
def test_warnings_make_an_answer_partial(
    more: dict[str, Any], warnings: tuple[str, ...], *, partial: bool
) -> None:
    answer = decode(body(**more), SeriesMemo(), GROUP)
    assert (answer.warnings, answer.partial) == (warnings, partial)


def test_only_the_newest_known_sample_is_delivered_again() -> None:
    memo = SeriesMemo()
    times = []
    for samples in ([[1, "1"], [2, "1"]], [[1, "1"], [2, "1"]], [[2, "1"], [3, "1"], [4, "1"]]):
        answer = decode(body(series("UTIL", *samples)), memo, GROUP)
        times.append([row.time for row in answer.samples["prometheus"]])
        at_once(answer.accept())
        memo.turn()
    assert times == [[1.0, 2.0], [2.0], [3.0, 4.0]]


def test_label_sets_are_shared_between_series_and_rounds() -> None:
    memo = SeriesMemo()
    labels = []
    for _ in range(3):
        answer = decode(
            body(series("UTIL", [1, "1"], gpu="0"), series("MEM", [1, "1"], gpu="0")), memo, GROUP
        )
        labels += [row.labels for row in answer.samples["prometheus"]]
        memo.turn()
    assert len({id(label_set) for label_set in labels}) == 1


def test_series_missing_in_a_round_are_dropped() -> None:
    memo = SeriesMemo()
    for number in range(50):
        decode(body(series("UTIL", [1, "1"], churn=str(number))), memo, GROUP)
        memo.turn()
    assert len(memo) == 1


_TRICKY = st.text(alphabet=st.sampled_from('ab\\"{}[],:é\n'), max_size=6) | st.sampled_from(
    ('},{"metric":{', "__name__", '"__name__":"x"', "UTIL", "")
)
_SERIES = st.fixed_dictionaries(
    {
        "metric": st.dictionaries(
            st.sampled_from(("__name__", "instance", "metric", "value")) | _TRICKY, _TRICKY
        ),
        "values": st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from(("1", "2.5", "NaN", "1_0", ""))),
            max_size=3,
        ),
    }
)


def shown(samples: Mapping[str, list[Sample]]) -> list[str]:
    """Texts, because NaN is not equal to itself."""
    return [
        f"{origin} {row.name} {sorted(row.labels.items())} {row.value} {row.time}"
        for origin, rows in samples.items()
        for row in rows
    ]


@given(
    st.lists(_SERIES | st.integers() | st.just({"metric": 5}), max_size=8),
    st.lists(st.integers(1, 400), max_size=8),
)
def test_an_answer_in_parts_gives_the_same_as_at_once(results: list[Any], cuts: list[int]) -> None:
    """The form with blanks is decoded as a whole, and is the reference."""
    response = {"status": "success", "data": {"resultType": "matrix", "result": results}}
    whole = decode(json.dumps(response).encode(), SeriesMemo(), GROUP)
    text = json.dumps(response, separators=(",", ":"), ensure_ascii=False).encode()
    reader = AnswerReader(SeriesMemo(), GROUP)
    start = 0
    for size in (*cuts, len(text)):
        at_once(reader.feed(text[start : start + size]))
        start += size
    in_parts = at_once(reader.finish())
    assert shown(in_parts.samples) == shown(whole.samples)
    assert shown(in_parts.newest) == shown(whole.newest)
    assert in_parts.rejects == whole.rejects


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_only_the_text_that_is_not_read_yet_is_held(size: int) -> None:
    rows = [series("UTIL", [1, "1"], instance=f"node-{number}") for number in range(200)]
    text = json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": rows}},
        separators=(",", ":"),
    ).encode()
    reader = AnswerReader(SeriesMemo(), GROUP)
    held = 0
    for start in range(0, len(text), size):
        at_once(reader.feed(text[start : start + size]))
        held = max(held, reader.held)
    assert held < 300
    assert len(at_once(reader.finish()).samples) == 200


def test_a_text_that_ends_early_or_is_malformed_gives_no_answer() -> None:
    rows = [series("UTIL", [1, "1"], instance=f"node-{number}") for number in range(9)]
    text = json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": rows}},
        separators=(",", ":"),
    ).encode()
    for wrong in (text[:-1], text[:500], text.replace(b'"node-4"', b"node-4")):
        with pytest.raises(SourceError, match="not the query API's") as error:
            decode(wrong, SeriesMemo(), GROUP)
        assert error.value.reason == "not_json"


def test_an_error_contains_the_message_of_the_engine() -> None:
    assert error_text(b'{"status":"error","errorType":"timeout","error":"slow"}') == "timeout: slow"
    assert error_text(b"<html>") == ""


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(
            ["status", "data", "resultType", "result", "metric", "value", "values", "__name__", "x"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_every_invalid_json_fails_with_a_reason(data: Any) -> None:
    for text in (
        json.dumps(data).encode(),
        json.dumps(
            {"status": "success", "data": {"resultType": "matrix", "result": [data]}}
        ).encode(),
    ):
        try:
            answer = decode(text, SeriesMemo(), GROUP)
        except SourceError:
            continue
        assert all(math.isfinite(row.time) for rows in answer.samples.values() for row in rows)
