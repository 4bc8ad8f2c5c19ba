"""A page that is read by the layout of the page before gives what parsing it gives."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from adapter.pipeline.exposition import pagelayout
from adapter.pipeline.exposition.limits import EXPORTER, SERVER
from adapter.pipeline.exposition.page import LabelMemo, Page, parse
from adapter.pipeline.exposition.pagelayout import LayoutSamples

WANTED: Final = frozenset(("m", "w", "c"))
SCRAPED: Final = 5.0
PAGES: Final = 3000

HEADS: Final = (
    *(b'm{a="1"}', b'm{a="2",pod="x"}', b'w{a="1",a="2"}', b'c{a="} 5"}', b'w {a="3"}', b"m"),
    *(b'unwanted{a="1"}', b'unwanted{a="x y"}', b"unwanted", b"# HELP m x", b"", b"#"),
    *(b" unwanted", b"unwanted\tx", b"unwanted{", b'w{a="1"', b"\t", b"\xef\xbb\xbf#"),
)
SEPARATORS: Final = (*(b" ",) * 12, b"\t", b"  ", b"", b"} ", b' # {x="y"} ')
NUMBERS: Final = (
    *(b"5", b"1", b"1.0", b"7", b"0.5") * 4,
    *(b"NaN", b"+Inf", b"1_0", b"x", b"5 5000", b"5\r", b"5\v", b" 5", b"5#", b"", b"# EOF"),
    *(
        b"-0",
        b"-0.0",
        b"1e5",
        b"1E400",
        b"5,",
        b"5,7",
        b"[5]",
        b"null",
        b'"5"',
        b"1]",
        b".5",
        b"05",
    ),
    *(b'5 # {x="y"} 5', b'5 # {x="y"} 7', b'7 # {x="y"} 7', b"} 5", b"5 # 5", b"5 }"),
)
ENDS: Final = (b"\n", b"\n", b"\n# EOF", b"\n# EOF\n")


def contents(page: Page) -> Any:
    samples = [(s.name, dict(s.labels), repr(s.value), type(s.value), s.time) for s in page.samples]
    return samples, page.rejects


def both(memo: LabelMemo, page: bytes) -> tuple[Any, Any]:
    """What the page gives with the memory of the pages before, and without."""
    known = parse(page, time=SCRAPED, memo=memo, wanted=WANTED)
    return contents(known), contents(parse(page, time=SCRAPED, wanted=WANTED))


@pytest.mark.parametrize(
    ("before", "page"),
    [
        pytest.param(b'm{a="1"} 5 # {x="y"} 5', b'm{a="1"} 5 # {x="y"} 7', id="exemplar"),
        pytest.param(b'm{a="1"}5 # {x="y"} 5', b'm{a="1"}5 # {x="y"} 7', id="no blank"),
        pytest.param(b'm{a="1"} 5\nx 5', b'm{a="1"} 5\nx} 5', id="brace"),
        pytest.param(b'm{a="1"} 5\n\t ', b'm{a="1"} 5\n\t 5', id="blank line"),
        pytest.param(b'm{a="1"} 5\n\t x 5', b'm{a="1"} 5\n\t x5\r', id="indented"),
    ],
)
def test_a_line_that_is_not_a_usual_sample_is_parsed(before: bytes, page: bytes) -> None:
    memo = LabelMemo()
    for _ in range(3):
        both(memo, before + b"\n")
    known, parsed = both(memo, page + b"\n")
    assert known == parsed


def test_random_pages_give_what_parsing_them_gives() -> None:
    random, by_layout = Random(1), 0
    for _ in range(PAGES):
        lines = [_line(random) for _ in range(random.randint(1, 4))]
        end, memo = random.choice(ENDS), LabelMemo()
        for scrape in range(6):
            page = b"\n".join(map(b"".join, lines)) + end
            by_layout += memo.layouts.read(page, SCRAPED, 1 << 20, list) is not None
            known, parsed = both(memo, page)
            assert known == parsed, page
            if scrape:
                _change(random, random.choice(lines))
    assert by_layout > PAGES / 10


def _line(random: Random) -> list[bytes]:
    return [random.choice(HEADS), random.choice(SEPARATORS), random.choice(NUMBERS)]


def _change(random: Random, line: list[bytes]) -> None:
    """Mostly the number."""
    at = random.choice((2, 2, 2, 0, 1))
    line[at] = random.choice((HEADS, SEPARATORS, NUMBERS)[at])


def test_a_layout_is_not_kept_for_server_pages() -> None:
    """Anyone who may create a pod may write one, and a layout takes memory."""
    memo = LabelMemo()
    for _ in range(3):
        read = parse(b'm{a="1"} 5\n', time=1.0, memo=memo, limits=SERVER)
    assert memo.layouts.layout is None
    assert isinstance(read.samples, list)


def test_a_first_page_has_a_layout_and_one_that_changes_each_time_has_none() -> None:
    memo = LabelMemo()
    assert isinstance(parse(b'm{a="1"} 5\n', time=1.0, memo=memo).samples, LayoutSamples)
    by_layout = []
    for label in (b"2", b"3", b"3"):
        read = parse(b'm{a="%b"} 5\n' % label, time=1.0, memo=memo)
        by_layout.append(isinstance(read.samples, LayoutSamples))
    assert by_layout == [False, False, True]


def test_a_page_that_is_parsed_once_has_no_layout() -> None:
    assert isinstance(parse(b'm{a="1"} 5\n', time=1.0).samples, list)


def test_a_layout_is_not_kept_for_large_pages() -> None:
    memo = LabelMemo()
    page = b'm{a="1"} 5\n' + b"#" * EXPORTER.large + b"\n"
    for _ in range(3):
        assert len(parse(page, time=1.0, memo=memo).samples) == 1
    assert memo.layouts.layout is None


def test_few_layouts_are_shared() -> None:
    def shared(number: int) -> tuple[Any, ...]:
        return pagelayout.share_equal(tuple([number]))  # noqa: C409 - each call has its own

    first = shared(0)
    assert shared(0) is first
    for number in range(1, 1000):
        shared(number)
    assert pagelayout.share_equal.cache_info().currsize == 512
    assert shared(0) is not first


def test_numbers_are_those_of_python() -> None:
    """Also the last of their digits, and the sign of 0."""
    random = Random(2)
    texts = [b"0", b"-0", b"9223372036854775794", b"123456789012345678901234567890", b"5e-324"]
    for _ in range(20_000):
        digits, exponent = random.getrandbits(random.randint(1, 70)), random.randint(-320, 320)
        texts.append(b"%d" % digits)
        texts.append(b"%d.%06d" % (digits, random.randint(0, 999_999)))
        texts.append(b"%de%d" % (digits, exponent))
        texts.append(repr(random.uniform(-1e12, 1e12)).encode())
    numbers = pagelayout._numbers(texts[2:])
    assert numbers is not None
    assert list(map(repr, numbers)) == list(map(repr, map(float, texts[2:])))
    assert list(map(repr, pagelayout._numbers(texts) or ())) == list(map(repr, map(float, texts)))
