"""The parser of exposition text: what a line costs, and what it never costs."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.pipeline.exposition.page import LabelMemo, Page, parse
from adapter.pipeline.exposition.samples import Sample


class Line(NamedTuple):
    name: str
    text: bytes
    row: tuple[str, dict[str, str], float, float]


GOOD = [
    Line("plain", b'a{b="c"} 1\n', ("a", {"b": "c"}, 1, 50)),
    Line("no labels", b"a 1\n", ("a", {}, 1, 50)),
    Line("empty braces", b"a{} 1\n", ("a", {}, 1, 50)),
    Line("carriage return", b'a{b="c"} 1\r\n', ("a", {"b": "c"}, 1, 50)),
    Line("bare name with carriage return", b"a 1\r\n", ("a", {}, 1, 50)),
    Line("trailing comma", b'a{b="c",} 1\n', ("a", {"b": "c"}, 1, 50)),
    Line("spaces", b' a { b = "c" , d = "e" }  1 \n', ("a", {"b": "c", "d": "e"}, 1, 50)),
    Line("tabs", b'a{b="c"}\t1\n', ("a", {"b": "c"}, 1, 50)),
    Line("no space before value", b'a{b="c"}1\n', ("a", {"b": "c"}, 1, 50)),
    Line("escapes", b'a{b="\\"\\\\\\n"} 1\n', ("a", {"b": '"\\\n'}, 1, 50)),
    Line("brace in a value", b'a{b="}",c="{} "} 1\n', ("a", {"b": "}", "c": "{} "}, 1, 50)),
    Line("closing brace and space in a value", b'a{b="x} 2"} 1\n', ("a", {"b": "x} 2"}, 1, 50)),
    Line("comma in a value", b'a{b="c,d=",e=""} 1\n', ("a", {"b": "c,d=", "e": ""}, 1, 50)),
    Line("hash in a value", b'a{b="# x"} 1\n', ("a", {"b": "# x"}, 1, 50)),
    Line("exponent", b'a{b="c"} 2.109867008e+09\n', ("a", {"b": "c"}, 2109867008, 50)),
    Line("negative", b'a{b="c"} -1.5\n', ("a", {"b": "c"}, -1.5, 50)),
    Line("infinite", b'a{b="c"} +Inf\n', ("a", {"b": "c"}, math.inf, 50)),
    Line("milliseconds", b'a{b="c"} 1 49500\n', ("a", {"b": "c"}, 1, 49.5)),
    Line("seconds of OpenMetrics", b'a{b="c"} 1 49.5\n# EOF\n', ("a", {"b": "c"}, 1, 49.5)),
    Line("seconds, ending lost", b'a{b="c"} 1 49.5\n', ("a", {"b": "c"}, 1, 49.5)),
    Line("exemplar", b'a{b="c"} 1 # {t="x"} 0.5\n', ("a", {"b": "c"}, 1, 50)),
    Line("exemplar with time", b'a{b="c"} 1 # {t="x"} 0.5 49\n', ("a", {"b": "c"}, 1, 50)),
    Line("exemplar without labels", b'a 3 # {t="x"} 0.5\n', ("a", {}, 3, 50)),
    Line("time and exemplar without labels", b"a 3 49 # {} 2\n# EOF\n", ("a", {}, 3, 49)),
    Line("time and exemplar", b'a{b="c"} 1 49 # {} 2\n# EOF\n', ("a", {"b": "c"}, 1, 49)),
    Line("other alphabets", 'a{b="ü"} 1\n'.encode(), ("a", {"b": "ü"}, 1, 50)),
    Line("colons", b'vllm:x{b="c"} 1\n', ("vllm:x", {"b": "c"}, 1, 50)),
    Line("NUL in a value", b'a{b="\0"} 1\n', ("a", {"b": "\0"}, 1, 50)),
    Line("byte order mark", b'\xef\xbb\xbfa{b="c"} 1\n', ("a", {"b": "c"}, 1, 50)),
]
BAD = [
    ("no value", b'a{b="c"}\n', "bad_value"),
    ("no value after a bare name", b"a \n", "bad_value"),
    ("a word", b'a{b="c"} <<<NULL>>>\n', "bad_value"),
    ("digits grouped as Python does", b'a{b="c"} 1_000\n', "bad_value"),
    ("two values", b'a{b="c"} 1 2 3\n', "bad_timestamp"),
    ("a sentence", b'a{b="c"} ERROR - FAILED TO CONVERT\n', "bad_value"),
    ("a timestamp that is none", b'a{b="c"} 1 x\n', "bad_timestamp"),
    ("an infinite timestamp", b'a{b="c"} 1 inf\n', "bad_timestamp"),
    ("open quote", b'a{b="c} 1\n', "bad_labels"),
    ("open brace", b'a{b="c" 1\n', "bad_labels"),
    ("no quotes", b"a{b=c} 1\n", "bad_labels"),
    ("two commas", b'a{b="c",,d="e"} 1\n', "bad_labels"),
    ("leading comma", b'a{,b="c"} 1\n', "bad_labels"),
    ("only a comma", b"a{,} 1\n", "bad_labels"),
    ("no comma", b'a{b="c"d="e"} 1\n', "bad_labels"),
    ("a label that starts with a digit", b'a{1b="c"} 1\n', "bad_labels"),
    ("no name", b'{b="c"} 1\n', "bad_name"),
    ("a name that starts with a digit", b'1a{b="c"} 1\n', "bad_name"),
    ("a dash in the name", b"a-b 1\n", "bad_name"),
    ("a NUL in the name", b"a\0 1\n", "bad_name"),
    ("HTML", b"<html>\n", "bad_name"),
    ("bytes that are not UTF-8", b'a{b="\xff"} 1\n', "bad_encoding"),
    ("an absurd line", b'a{b="' + b"x" * 70_000 + b'"} 1\n', "line_too_long"),
    ("a line longer than a chunk", b'a{b="' + b"x" * 600_000 + b'"} 1\n', "line_too_long"),
]


@pytest.mark.parametrize("line", GOOD, ids=lambda line: line.name)
def test_a_line_is_read_the_same_cold_and_remembered(line: Line) -> None:
    memo = LabelMemo()
    for _ in range(2):
        assert parse(line.text, time=50, memo=memo) == Page([Sample(*line.row)], {})


@pytest.mark.parametrize(("text", "reason"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_a_bad_line_costs_one_line(text: bytes, reason: str) -> None:
    memo = LabelMemo()
    good = b'ok{b="c"} 1\n'
    for _ in range(2):
        page = parse(good + text + good, time=50, memo=memo)
        assert [row.name for row in page.samples] == ["ok", "ok"]
        assert page.rejects == {reason: 1}


@pytest.mark.parametrize(
    ("text", "rejects"),
    [
        (b"", {}),
        (b"\n\n \n\t\n", {}),
        (b"# HELP a b\n# TYPE a gauge\n#\n#x\n", {}),
        (b"# EOF", {}),
        (b"\xef\xbb\xbf", {}),
        (b'a{b="c"} 1', {"cut_line": 1}),
        (b"# HELP a b", {"cut_line": 1}),
    ],
)
def test_pages_without_a_whole_line_have_no_rows(text: bytes, rejects: dict[str, int]) -> None:
    assert parse(text, time=50) == Page([], rejects)


def test_of_a_repeated_label_the_first_occurrence_wins_and_every_page_counts_it() -> None:
    memo = LabelMemo()
    text = b'a{gpu="0",UUID="u",gpu="pod label"} 1\na{gpu="1",UUID="v"} 2\n'
    for _ in range(2):
        page = parse(text, time=1, memo=memo)
        assert [row.labels["gpu"] for row in page.samples] == ["0", "1"]
        assert page.rejects == {"duplicate_label": 1}


@pytest.mark.parametrize(
    "label",
    [
        *("pod", "namespace", "container", "pod_uid", "pod_name", "pod_namespace"),
        *("container_name", "exported_pod", "exported_namespace", "exported_container"),
    ],
)
def test_of_a_repeated_label_that_names_the_workload_the_last_occurrence_wins(label: str) -> None:
    memo = LabelMemo()
    text = f'a{{gpu="0",{label}="the tenant",gpu="1",{label}="the exporter"}} 1\n'.encode()
    for _ in range(2):
        page = parse(text, time=1, memo=memo)
        assert [row.labels for row in page.samples] == [{"gpu": "0", label: "the exporter"}]
        assert page.rejects == {"duplicate_label": 1}


def test_no_text_of_a_page_outlives_the_page() -> None:
    # Interned text is never freed by some releases of Python 3.12.
    name, label, value = (f"{part}_{id(part)}" for part in ("name", "label", "value"))
    page = parse(f'{name}{{{label}="{value}"}} 1\n'.encode(), time=1)
    ((series, labels, *_),) = page.samples
    ((key, text),) = labels.items()
    assert (series, key, text) == (name, label, value)
    for mine, parsed in ((name, series), (label, key), (value, text)):
        assert sys.intern(mine) is not parsed


def test_the_last_line_may_be_cut_anywhere_so_it_is_dropped() -> None:
    page = parse(b'a{b="c"} 10\na{b="d"} 100', time=1)
    assert [row.value for row in page.samples] == [10]
    assert page.rejects == {"cut_line": 1}


def test_unwanted_series_are_passed_over_uncounted() -> None:
    page = parse(b'a{b="c"} 1\nb{b="c"} x\nc 1\nb 2\n', time=1, wanted={"a", "c"})
    assert [row.name for row in page.samples] == ["a", "c"]
    assert page.rejects == {}


def test_label_sets_are_the_same_object_from_page_to_page() -> None:
    memo = LabelMemo()
    # A page with a time has no layout.
    text = b'a{b="c"} 1\nd{b="c"} 1\na{b="x",b="y"} 1\na{b="\\\\"} 1\ne{f="g"} 1 1\n'
    first, second = parse(text, time=1, memo=memo), parse(text, time=2, memo=memo)
    assert all(a.labels is b.labels for a, b in zip(first.samples, second.samples, strict=True))
    assert first.samples[0].labels is first.samples[1].labels


def test_the_memo_holds_what_the_last_page_held_and_no_more() -> None:
    memo = LabelMemo()
    for generation in range(100):
        lines = [f'a{{pod="p-{generation}-{i}"}} 1\n' for i in range(20)]
        parse("".join(lines).encode(), time=1, memo=memo)
        assert len(memo) == (20 if generation else 0)  # the first page has a layout


def test_an_exporter_whose_pages_differ_only_in_numbers_keeps_no_labels() -> None:
    """They are read again where somebody asks for the samples, and are those of the page."""
    memo, line = LabelMemo(), b'a{b="c",pod="p"} %d\na{b="x",b="y"} 1\n'
    for time in range(1, 4):
        page = parse(line % time, time=time, memo=memo)
        assert (len(memo), page.rejects) == (0, {"duplicate_label": 1})
        assert page.samples == parse(line % time, time=time).samples
    parse(b'a{b="c",pod="q"} 4\n', time=4, memo=memo)
    assert len(memo) == 1


def test_rows_are_bounded() -> None:
    page = parse(b'a{b="c"} 1\n' * 100_000, time=1)
    assert len(page.samples) == 65_536
    assert page.rejects["too_many_samples"] > 0


NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)
KEYS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ROWS = st.builds(
    Sample,
    NAMES,
    st.dictionaries(KEYS, TEXT, max_size=4),
    st.floats(allow_nan=False),
    st.just(1700000000.0) | st.integers(1_600_000_000, 1_800_000_000).map(float),
)


def render(rows: list[Sample], *, stamped: bool = True) -> bytes:
    """The text that an exporter would write for these rows."""
    lines = []
    for row in rows:
        labels = ",".join(f'{key}="{escaped(value)}"' for key, value in row.labels.items())
        stamp = f" {int(row.time * 1000)}" if stamped else ""
        lines.append(f"{row.name}{{{labels}}} {row.value!r}{stamp}\n")
    return "".join(lines).encode()


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(st.lists(ROWS, max_size=8))
def test_reading_what_was_rendered_gives_the_rows_back(rows: list[Sample]) -> None:
    assert parse(render(rows), time=1700000000.0) == Page(rows, {})


@given(st.lists(ROWS, min_size=1, max_size=6), st.data())
def test_a_page_cut_anywhere_yields_the_rows_before_the_cut(
    rows: list[Sample], data: st.DataObject
) -> None:
    page = render(rows)
    cut = data.draw(st.integers(0, len(page)))
    samples = parse(page[:cut], time=1700000000.0).samples
    assert samples == rows[: page[:cut].count(b"\n")]


@given(
    st.binary(max_size=200)
    | st.text('a{}="\\,# \n1e_.\r\t', max_size=60).map(lambda text: text.encode())
)
@example(b'a{b="c"} 1 # {} ')
def test_no_bytes_raise_and_the_memo_changes_nothing(page: bytes) -> None:
    memo = LabelMemo()
    first = parse(page, time=1, memo=memo)
    again = parse(page, time=1, memo=memo)
    assert repr(first) == repr(again)
    for row in first.samples:
        assert isinstance(row.value, float)
        assert math.isfinite(row.time)


def test_a_page_cut_inside_a_label_that_looks_like_its_end_keeps_its_milliseconds() -> None:
    page = parse(b'a 1 49500\nb{c="# EOF', time=50.0)
    assert [row.time for row in page.samples] == [49.5]


def test_few_samples_without_a_number_are_kept() -> None:
    page = b"".join(b'a{pod="%d"} N/A\n' % number for number in range(100))
    read = parse(page, time=1.0)
    assert read.rejects == {"bad_value": 100}
    assert [sample.labels["pod"] for sample in read.unread] == [str(n) for n in range(64)]
    long = parse(b'a{pod="%b"} N/A\n' % (b"x" * 1024), time=1.0)
    assert (long.unread, long.rejects) == ([], {"bad_value": 1})


def test_a_sample_without_a_number_is_kept_of_wanted_series_only() -> None:
    page = b'a{pod="p"} N/A\nb{pod="p"} N/A\na{pod=} N/A\na N/A\n'
    read = parse(page, time=1.0, wanted={"a"})
    assert [(sample.name, dict(sample.labels)) for sample in read.unread] == [
        ("a", {"pod": "p"}),
        ("a", {}),
    ]
    assert all(math.isnan(sample.value) for sample in read.unread)
