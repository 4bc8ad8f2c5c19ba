"""An answer that is compared with the one before gives what decoding it gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.sources.errors import SourceError
from adapter.sources.prometheus.answer import QueryAnswer
from adapter.sources.prometheus.labelsets import LabelSet, SeriesMemo
from adapter.sources.prometheus.querygroup import QueryGroup
from adapter.sources.prometheus.reader import AnswerReader, decode
from apiservice.runtime.steps import at_once
from tests.adapter.sources.prometheus.test_answer import series, shown
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


def text_of(results: Sequence[Any], *, blanks: bool = False) -> bytes:
    known = {"status": "success", "data": {"resultType": "matrix", "result": results}}
    if blanks:
        return json.dumps(known).encode()
    return json.dumps(known, separators=(",", ":"), ensure_ascii=False).encode()


def taken(text: bytes, memo: SeriesMemo) -> QueryAnswer:
    answer = decode(text, memo, GROUP)
    at_once(answer.accept())
    memo.turn()
    return answer


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
    """The form with blanks is decoded as a whole, and is the reference."""
    fast, full = SeriesMemo(), SeriesMemo()
    for changes in ([], *rounds):
        for change in changes:
            results = changed(results, *change)
        one = taken(text_of(results), fast)
        other = taken(text_of(results, blanks=True), full)
        assert sorted(shown(one.samples)) == sorted(shown(other.samples))
        assert one.rejects == other.rejects
        assert one.count == other.count


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
