"""Of a large page the lines of wanted series are kept, in any cut of it into parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.linesieve import LineSieve
from adapter.pipeline.exposition.page import parse
from apiservice.runtime.steps import at_once
from tests.adapter.pagetext import render
from tests.adapter.pipeline.exposition.test_page_laws import ROWS, SCRAPED, contents
from tests.examples import bounded

WANTED = frozenset(("a", "vllm:num_requests", "_"))


def sieved(page: bytes, cuts: Sequence[int] = (), lines: int = 1 << 18) -> LineSieve:
    sieve = LineSieve(WANTED, lines)
    ends = sorted({min(cut, len(page)) for cut in cuts})
    for start, end in zip([0, *ends], [*ends, len(page)], strict=True):
        at_once(sieve.feed(page[start:end]))
    return sieve


@bounded(60)
@given(ROWS, st.lists(st.integers(0, 2000), max_size=6), st.integers(0, 2000), st.booleans())
def test_a_page_and_what_is_kept_of_it_have_the_same_samples(
    rows: list[object], cuts: list[int], end: int, whole: bool
) -> None:
    page = render(rows, SCRAPED)  # type: ignore[arg-type]  # the strategy of the page laws
    page = page if whole else page[:end]
    kept = sieved(page, cuts)
    before, after = (parse(text, time=SCRAPED, wanted=WANTED) for text in (page, kept.page()))
    assert contents(after.samples) == contents(before.samples)
    assert kept.size <= len(page) + 1


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b'a{b="c"} 1\n', True),
        (b"a 1\n", True),
        (b" \ta 1\n", True),
        (b'ab{b="c"} 1\n', False),
        (b"ab 1\n", False),
        (b"# HELP a b\n", False),
        (b"\n", False),
        (b" # a 1\n", False),
        (b'{b="c"} 1\n', False),
        (b'a{b="' + b"x" * 20_000 + b'"} 1\n', False),
    ],
)
def test_only_lines_of_wanted_series_are_kept(line: bytes, kept: bool) -> None:
    sieve = sieved(b"z 1\n" + line + b"_ 2\n", range(0, 40_000, 7))
    assert sieve.page() == (line if kept else b"") + b"_ 2\n"


def test_the_end_of_an_open_metrics_page_is_kept() -> None:
    for end in (b"# EOF\n", b"# EOF"):
        assert sieved(b'ab{b="c"} 1\na 1 5\n' + end).page() == b"a 1 5\n" + end


def test_no_more_lines_are_looked_at_than_allowed() -> None:
    sieve = sieved(b"\n" * 5000, range(0, 5000, 100), lines=2000)
    assert sieve.exhausted
    assert not sieved(b"\n" * 2000, lines=2000).exhausted


def test_a_line_without_an_end_takes_no_memory() -> None:
    sieve = LineSieve(WANTED, 10)
    for _ in range(100):
        at_once(sieve.feed(b"a" * 10_000))
    at_once(sieve.feed(b' 1\na{b="c"} 2\n'))
    assert sieve.page() == b'a{b="c"} 2\n'
