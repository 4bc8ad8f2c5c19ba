"""What a page may cost: each bound, driven over its edge."""

from __future__ import annotations

import pytest

from adapter.pipeline.exposition.cutlabels import CutLabels
from adapter.pipeline.exposition.limits import LABEL_BYTES, SERVER, PageLimits
from adapter.pipeline.exposition.line import MAX_LABELS, MAX_NAME, MAX_TEXT, MAX_WRITTEN
from adapter.pipeline.exposition.page import LabelMemo, Page, parse

SMALL = PageLimits(lines=10, samples=3, work=12, held=3000)


def read(page: bytes, limits: PageLimits = SMALL, memo: LabelMemo | None = None) -> Page:
    return parse(page, time=1.0, limits=limits, memo=memo)


@pytest.mark.parametrize("line", [b"\n", b"# HELP a b\n", b'a{b="c"} 1\n', b"x\n"])
def test_a_page_of_more_lines_than_it_may_have_is_abandoned_as_a_whole(line: bytes) -> None:
    page = read(line * 11)
    assert page == Page([], {"too_costly": 1})
    assert page.abandoned
    assert not read(line * 2).abandoned


@pytest.mark.parametrize(
    "line", [b'a{b="c"} x\n', b'a{b="c",b="d"} 1\n', b"a{b\n", b'a{b="\\\\"} 1 1\n']
)
def test_a_page_that_needs_too_many_closer_looks_is_abandoned_as_a_whole(line: bytes) -> None:
    assert not read(line * 2).abandoned
    assert read(b'good{a="b"} 1\n' + line * 7) == Page([], {"too_costly": 1})


def test_an_abandoned_page_leaves_what_was_learnt_before() -> None:
    memo = LabelMemo()
    for label in (b"a", b"c"):  # a first page would have a layout instead
        read(b'a{b="%b"} 1\n' % label, memo=memo)
    read(b'a{b="new"} 1\n' + b"\n" * 11, memo=memo)
    assert list(memo.sets) == [b'b="c"']


def test_rows_whose_labels_have_no_room_are_left_out_and_counted() -> None:
    page = read(b'a{b="1"} 1\na{b="2"} 2\na{b="3"} 3\na{b="1"} 4\n')
    assert [row.value for row in page.samples] == [1, 2, 4]
    assert page.rejects == {"over_budget": 1}
    assert 0 < page.held <= SMALL.held


def test_room_taken_by_labels_that_are_gone_is_free_again() -> None:
    memo = LabelMemo()
    for number in range(10):
        page = read(b'a{b="%d"} 1\na{c="%d"} 2\n' % (number, number), memo=memo)
        assert len(page.samples) == 2
        assert page.rejects == {}


@pytest.mark.parametrize(
    "line",
    [
        b'a{b="c"} x\n',
        b'a{b="c"} \n',
        b'a{b="c"} 1 x\n',
        b'a{b="c"} 1_0\n',
        b'a{b="c",b="d"} x\n',
        b'a{b="c",b="d"} 1 nan\n',
    ],
)
def test_nothing_is_remembered_of_a_line_without_a_good_number(line: bytes) -> None:
    memo = LabelMemo()
    page = read(line, memo=memo)
    assert page.samples == []
    assert len(memo) == 0
    assert page.held == 0


LONG = (
    (b'z="' + b"x" * (MAX_TEXT + 1) + b'"', "z", "label_too_long"),
    (b'z="\\n' + b"x" * MAX_TEXT + b'"', "z", "label_too_long"),
    (b"a" * (MAX_NAME + 1) + b'="x"', "a" * MAX_NAME, "label_too_long"),
    (b",".join(b'a%d="x"' % i for i in range(MAX_LABELS + 1)), "a64", "too_many_labels"),
)


@pytest.mark.parametrize(("labels", "cut", "reason"), LONG)
def test_a_label_beyond_a_bound_is_left_out_of_its_line(
    labels: bytes, cut: str, reason: str
) -> None:
    memo = LabelMemo()
    line = b'a{UUID="u",' + labels + b',pod="p"} 1\n'
    for _ in range(3):  # the third is known by its layout
        page = parse(line, time=1.0, memo=memo)
        (sample,) = page.samples
        assert (sample.labels["UUID"], sample.labels["pod"]) == ("u", "p")
        assert cut not in sample.labels
        assert len(sample.labels) <= MAX_LABELS
        assert all(len(text) <= MAX_TEXT for text in (*sample.labels, *sample.labels.values()))
        assert isinstance(sample.labels, CutLabels)
        assert sample.labels.cut[cut] == reason
        assert page.rejects == {}
    assert len(memo) == 0


def test_a_label_beyond_a_bound_takes_part_in_the_memory_of_the_page() -> None:
    names = MAX_WRITTEN - 2
    many = b'a{UUID="u",' + b",".join(b'a%d="x"' % i for i in range(names)) + b"} 1\n"
    assert parse(many, time=1.0).held > LABEL_BYTES * names


def test_a_line_of_far_too_many_labels_is_left_out() -> None:
    many = b",".join(b'a%d="x"' % i for i in range(MAX_WRITTEN + 1))
    page = parse(b'good{a="b"} 1\nbad{' + many + b"} 1\n", time=1.0)
    assert [row.name for row in page.samples] == ["good"]
    assert page.rejects == {"too_many_labels": 1}


def test_a_repeated_label_beyond_a_bound_follows_the_rule_for_repeated_labels() -> None:
    long = b"x" * (MAX_TEXT + 1)
    first = parse(b'a{UUID="' + long + b'",UUID="u",pod="' + long + b'",pod="p"} 1\n', time=1.0)
    (sample,) = first.samples
    assert dict(sample.labels) == {"pod": "p"}, "the first UUID wins, and the last pod"
    assert first.rejects == {"duplicate_label": 1}


def test_labels_at_their_bounds_are_read() -> None:
    names = [b"a%d" % i + b"_" * (MAX_NAME - 10) for i in range(20)]
    labels = b",".join(name + b'="' + b"x" * 100 + b'"' for name in names)
    page = parse(b"good{" + labels + b"} 1\n", time=1.0)
    assert page.rejects == {}
    assert len(page.samples[0].labels) == 20


def test_a_pods_own_page_may_cost_less_than_an_exporters() -> None:
    page = b"".join(b'a{b="%d"} 1\n' % number for number in range(1200))
    assert len(parse(page, time=1.0).samples) == 1200
    mine = parse(page, time=1.0, limits=SERVER)
    assert 0 < len(mine.samples) < 1000
    assert mine.held <= SERVER.held
