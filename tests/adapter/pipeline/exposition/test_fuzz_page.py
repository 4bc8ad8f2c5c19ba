"""Exporters' pages, bent: no crash, and nothing outside the promise comes out of the store."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.page import LabelMemo, Page, parse
from adapter.pipeline.exposition.samples import ScrapeResult
from tests.adapter.fuzzing import bent
from tests.adapter.promise import broken, pods_named
from tests.adapter.world import CATALOG, World, every_page, row
from tests.examples import bounded

SCRAPED = 1_700_000_000.0
TRAPS = "".join(
    row(series, value, pod, uuid=uuid, more=more)
    for series, value in (
        ("DCGM_FI_DEV_GPU_UTIL", 87),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.87),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5),
        ("DCGM_FI_DEV_FB_USED", 38000),
        ("DCGM_FI_DEV_FB_FREE", 42000),
        ("DCGM_FI_DEV_POWER_USAGE", 400.5),
    )
    for pod, uuid, more in (
        ("p", "GPU-0", ""),
        ("q", "GPU-1", 'GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'),
        ("r", "GPU-2", 'vgpu="1"'),
        ("", "GPU-2", ""),
    )
).encode()


@lru_cache(maxsize=1)
def seeds() -> list[bytes]:
    """Every page, the longest cut, and one with all traps."""
    return [TRAPS, *(path.read_bytes()[:20_000] for path in every_page())]


def kept(page: bytes, *others: bytes) -> list[str]:
    """What breaks the promise after these pages came one after the other."""
    pages = [page, *others]
    parsed = [parse(text, time=SCRAPED, wanted=CATALOG.series) for text in pages]
    world = World(*pods_named(r for read in parsed for r in read.samples))
    memo = LabelMemo()
    for number, text in enumerate(pages):
        now = SCRAPED + 5.0 * number
        read = parse(text, time=now, memo=memo, wanted=CATALOG.series)
        world.store.ingest(ScrapeResult("http://exporter", "n", read.samples, now, read.rejects))
    return broken(world, CATALOG, now)


@bounded(13)
@given(st.data())
def test_fuzz_no_bent_page_breaks_the_promise(data: st.DataObject) -> None:
    first = data.draw(bent(seeds()))
    second = data.draw(bent([first]))
    assert kept(first, second) == []


@bounded(100)
@given(st.data())
def test_fuzz_a_bent_page_is_read_the_same_with_and_without_memory(data: st.DataObject) -> None:
    first = data.draw(bent(seeds()))
    second = data.draw(bent([first]))
    memo = LabelMemo()
    for _ in range(2):  # the second is known by its layout
        parse(first, time=SCRAPED, memo=memo)
    warm, cold = parse(second, time=SCRAPED, memo=memo), parse(second, time=SCRAPED)
    assert contents(warm) == contents(cold)


@bounded(100)
@given(st.binary(max_size=400))
def test_fuzz_no_bytes_break_the_parser(page: bytes) -> None:
    assert all(
        row.name in CATALOG.series for row in parse(page, time=1.0, wanted=CATALOG.series).samples
    )


def contents(page: Page) -> tuple[str, dict[str, int]]:
    return repr(page.samples), page.rejects
