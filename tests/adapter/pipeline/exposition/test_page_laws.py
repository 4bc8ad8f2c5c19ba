"""What holds for every page that can be written, and for every way to cut one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.samples import Sample
from tests.adapter.pagetext import render
from tests.adapter.world import every_page
from tests.examples import bounded

SCRAPED = 1_700_000_000.0
NAMES = st.sampled_from(("a", "A_9", "vllm:num_requests", ":x", "_", "DCGM_FI_DEV_GPU_UTIL"))
LABEL_NAMES = st.sampled_from(("a", "_", "UUID", "pod", "namespace", "GPU_I_ID", "x9"))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ("", "}", "} 1", '"', "\\", "\\n", "\n", "# EOF", 'a="b",c="', ",", "{", "é", "\r")
)
TIMES = st.just(SCRAPED) | st.integers(-600_000, 60_000).map(lambda ms: SCRAPED + ms / 1000)
ROWS = st.lists(
    st.builds(Sample, NAMES, st.dictionaries(LABEL_NAMES, TEXT, max_size=4), st.floats(), TIMES),
    max_size=6,
)


def contents(rows: Sequence[Sample]) -> list[tuple[str, list[tuple[str, str]], str, float]]:
    """Rows in a form in which NaN is NaN and the order of labels does not count."""
    return [(r.name, sorted(r.labels.items()), repr(r.value), round(r.time, 3)) for r in rows]


@bounded(40)
@given(ROWS)
def test_what_is_written_is_read(rows: list[Sample]) -> None:
    page = parse(render(rows, SCRAPED), time=SCRAPED)
    assert contents(page.samples) == contents(rows)
    assert page.rejects == {}


@bounded(40)
@given(ROWS, ROWS)
def test_what_was_learnt_from_one_page_changes_nothing_on_the_next(
    one: list[Sample], other: list[Sample]
) -> None:
    memo = LabelMemo()
    parse(render(one, SCRAPED), time=SCRAPED, memo=memo)
    again = parse(render(other, SCRAPED), time=SCRAPED, memo=memo)
    assert contents(again.samples) == contents(other)


@bounded(40)
@given(ROWS, st.data())
def test_a_page_cut_anywhere_yields_a_part_of_its_rows(
    rows: list[Sample], data: st.DataObject
) -> None:
    page = render(rows, SCRAPED)
    end = data.draw(st.integers(0, len(page)))
    cut = contents(parse(page[:end], time=SCRAPED).samples)
    assert cut == contents(rows)[: len(cut)]


def test_a_page_of_an_exporter_cut_anywhere_yields_a_part_of_its_rows() -> None:
    for path in every_page():
        page = path.read_bytes()
        whole = contents(parse(page, time=SCRAPED).samples)
        for end in range(0, len(page), 1 + len(page) // 60):
            cut = contents(parse(page[:end], time=SCRAPED).samples)
            assert cut == whole[: len(cut)], f"{path.name} cut after {end} bytes"
