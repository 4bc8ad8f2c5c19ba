"""An answer that is compared with the one before gives what decoding it gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import LabelSet, QueryAnswer
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import AnswerReader, decode
from apiservice.runtime.steps import at_once
from tests.adapter.pipeline.sources.prometheus.test_answer import series, shown
from tests.examples import bounded

GROUP = QueryGroup("usage", ("UTIL", "MEM"))
_LABELS = st.fixed_dictionaries(
    {"instance": st.sampled_from("ab")},
    optional={
        "__name__": st.sampled_from(("UTIL", "MEM", "")),
        "gpu": st.sampled_from(("0", "1", '},{"metric":{', ',"values":[[', "é\\")),
        "values": st.just("x"),
    },
)
_SERIES = st.fixed_dictionaries(
    {
        "metric": _LABELS,
        "values": st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from(("1", "2.5", "NaN", "1_0", "x", "[{"))),
            max_size=3,
        ).map(sorted),
    },
    optional={"histograms": st.just([[1, {"count": "1"}]]), "value": st.just([3, "7"])},
) | st.sampled_from(
    (5, "text", {"metric": 5, "values": [[1, "1"]]}, {"metric": {}, "values": [[1, 2]]})
)
_CHANGES = st.lists(
    st.tuples(st.sampled_from(("drop", "add", "later", "swap")), st.integers(0, 11), _SERIES),
    max_size=3,
)


class CountingMemo(SeriesMemo):
    """Counts the label texts that are looked up."""

    looked_up = 0

    def series(self, raw: bytes) -> tuple[LabelSet, str]:
        self.looked_up += 1
        return super().series(raw)


def text_of(results: Sequence[Any]) -> bytes:
    response = {"status": "success", "data": {"resultType": "matrix", "result": results}}
    return json.dumps(response, separators=(",", ":"), ensure_ascii=False).encode()


def taken(text: bytes, memo: SeriesMemo, *, compared: bool = True) -> QueryAnswer:
    """Take an answer.

    Args:
        compared: whether the next answer may be compared with it. Otherwise that is decoded.
    """
    answer = decode(text, memo, GROUP)
    at_once(answer.accept())
    if not compared:
        answer.repeats = True
    memo.turn()
    return answer


def same(rounds: Sequence[bytes]) -> QueryAnswer:
    """Take answers in both ways; return the last one."""
    fast, full, one = SeriesMemo(), SeriesMemo(), QueryAnswer()
    for text in rounds:
        one, other = taken(text, fast), taken(text, full, compared=False)
        assert sorted(shown(one.samples)) == sorted(shown(other.samples))
        assert one.rejects == other.rejects
        assert one.count == other.count
    return one


def changed(results: list[Any], what: str, at: int, more: Any) -> list[Any]:
    place = at % (len(results) + 1)
    one = results[place : place + 1]
    rest = results[place + 1 :]
    if what == "drop":
        return results[:place] + rest
    if what == "add":
        return [*results[:place], more, *one, *rest]
    if what == "swap":
        return results[:place] + rest + one
    return [later(result, at) for result in results]


def later(result: Any, seconds: int) -> Any:
    if not isinstance(result, dict) or not isinstance(result.get("values"), list):
        return result
    return result | {"values": [[time + seconds, text] for time, text in result["values"]]}


@settings(bounded(100), derandomize=True)
@given(st.lists(_SERIES, max_size=10), st.lists(_CHANGES, min_size=1, max_size=5))
def test_answers_in_succession_give_what_decoding_each_gives(
    results: list[Any], rounds: list[list[tuple[str, int, Any]]]
) -> None:
    texts = [text_of(results)]
    for changes in rounds:
        for change in changes:
            results = changed(results, *change)
        texts.append(text_of(results))
    same(texts)


@pytest.mark.parametrize(
    "between", [5, {"value": [3, "7"], "metric": {"instance": "b"}, "values": [[2, "2"]]}]
)
def test_a_series_before_a_result_in_another_form_keeps_its_samples(between: Any) -> None:
    known, last = series("UTIL", [1, "7"], instance="a"), series("UTIL", [1, "1"], instance="z")
    new = series("MEM", [2, "3"], instance="a")
    answer = same([text_of([known, last]), text_of([new, between, known, last])])
    assert "a MEM [('instance', 'a')] 3.0 2.0" in shown(answer.samples)


def test_samples_without_labels_between_two_series_are_not_those_of_the_next() -> None:
    """A text that is cut into three pieces has four results."""
    rows = [series("UTIL", [1, "1"], instance=name) for name in "abc"]
    more = [rows[0], {"values": [[2, "2"]]}, *rows[1:]]
    answer = same([text_of(rows), text_of(more)])
    assert answer.rejects == {"bad_series": 1}
    assert {row.time for (row,) in answer.newest.values()} == {1.0}


def test_a_malformed_member_beside_the_samples_costs_the_series() -> None:
    rows = [series("UTIL", [1, "1"], instance=name) for name in "abc"]
    answer = same([text_of(rows), text_of([rows[0] | {"value": 5}, *rows[1:]])])
    assert answer.rejects == {"bad_series": 1}


def test_samples_that_are_json_only_together_give_no_answer() -> None:
    memo = SeriesMemo()
    rows = [series("UTIL", [1, "1"], instance=name) for name in "abcd"]
    text = text_of(rows)
    taken(text, memo)
    some = b'"values":[[1,"1"]]'
    wrong = text.replace(some, b'"values":[[1,"1"]', 1)
    wrong = wrong.replace(some, b'"values":[2,"2"]]', 1)
    wrong = wrong.replace(some, b'"values":[[1,"1"]],[[2,"2"]]', 1)
    with pytest.raises(SourceError) as error:
        decode(wrong, memo, GROUP)
    assert error.value.reason == "not_json"


def test_a_label_whose_name_ends_like_that_of_the_name_is_another_label() -> None:
    answer = taken(
        text_of([{"metric": {'x"__name__': "UTIL"}, "values": [[1, "1"]]}]), SeriesMemo()
    )
    assert answer.rejects == {"unnamed_series": 1}


def repeated(*samples: list[list[Any]]) -> list[Any]:
    return [series("UTIL", *some, instance="a") for some in samples]


@pytest.mark.parametrize("turned", [False, True])
def test_the_last_of_repeated_series_says_which_samples_are_old(*, turned: bool) -> None:
    rows = repeated([[1, "1"], [2, "x"], [3, "3"]], [[1, "1"], [6, "x"], [9, "9"]])
    rest = of_nodes(range(3), 9.0)
    then = [*rows[::-1], *rest] if turned else [*rows, *rest]
    assert not same([text_of([*rows, *rest]), text_of(then)]).rejects


def test_repeated_series_stay_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two is read before the places of all series are looked up."""
    monkeypatch.setattr("adapter.pipeline.sources.prometheus.reader._PART", 8192)
    few, many = repeated([[1, "1"], [2, "2"]], [[26, "0"], [31, "0"]])
    rest = of_nodes(range(600), 9.0)
    then = [few, *rest[:200], *rest[500:], *rest[200:500], many]
    answer = same([text_of([*rest, few]), text_of(then), text_of(then)])
    assert [sample.time for sample in answer.samples["a"]] == [2.0, 31.0]


def of_nodes(numbers: range, time: float = 1.0) -> list[Any]:
    return [series("UTIL", [time, "1"], instance=f"node-{number}") for number in numbers]


@pytest.mark.parametrize(("missing", "indexed"), [(0, False), (256, False), (257, True)])
def test_the_places_of_series_after_many_missing_ones_are_looked_up(
    missing: int, *, indexed: bool
) -> None:
    memo = CountingMemo()
    taken(text_of(of_nodes(range(600))), memo)
    memo.looked_up = 0
    reader = AnswerReader(memo, GROUP)
    at_once(reader.feed(text_of(of_nodes(range(missing, 600), 2.0))))
    answer = at_once(reader.finish())
    assert (reader._index is not None) is indexed
    assert memo.looked_up == 0
    assert list(answer.newest) == [f"node-{number}" for number in range(missing, 600)]
    assert {row.time for (row,) in answer.newest.values()} == {2.0}


def test_a_malformed_text_after_a_good_answer_gives_no_answer() -> None:
    memo = SeriesMemo()
    text = text_of(of_nodes(range(9)))
    taken(text, memo)
    for wrong in (text[:-1], text[:500], text.replace(b'"node-4"', b"node-4")):
        with pytest.raises(SourceError, match="not the query API's") as error:
            decode(wrong, memo, GROUP)
        assert error.value.reason == "not_json"


def test_series_in_another_order_are_not_decoded_and_keep_their_order() -> None:
    """VictoriaMetrics answers range selectors in any order."""
    memo = CountingMemo()
    taken(text_of(of_nodes(range(600))), memo)
    memo.looked_up = 0
    rows = of_nodes(range(601), 2.0)
    answer = taken(text_of(rows[7::2] + rows[0:7] + rows[8::2]), memo)
    assert memo.looked_up == 1
    assert list(answer.newest) == [f"node-{number}" for number in range(601)]
    assert {row.time for (row,) in answer.newest.values()} == {2.0}
