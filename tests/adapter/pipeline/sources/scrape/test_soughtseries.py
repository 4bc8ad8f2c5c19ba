"""For which series a page is known to have no others: those that it was read for in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from tests.adapter.pipeline.sources.conftest import Recorder, Web, answer, running

OPTIONS = ScrapeOptions(interval=0.02, timeout=30.0, max_backoff=0.04)
KNOWN = frozenset({"known"})
MORE = KNOWN | {"asked"}


@pytest.mark.parametrize(
    ("page", "read"),
    [
        pytest.param(b'known{a="b"} 1\nother 2\n', True, id="whole"),
        pytest.param(b'known{a="b",a="c"} 1\n', True, id="a label twice"),
        pytest.param(b'known{a="b"} 1\nknown{a="c"} 7', False, id="cut"),
        pytest.param(b'known{a="b"} 1\nknown{a} 7\n', False, id="a line that cannot be read"),
        pytest.param(b'known{a="b"} 1\nknown{a="c"} x\n', False, id="a number that is none"),
    ],
)
async def test_a_page_that_was_read_in_full_says_for_which_series(
    web: Web, sink: Recorder, page: bytes, read: bool
) -> None:
    assert await sought(web, sink, page, iter(lambda: KNOWN, None)) == (KNOWN if read else None)


async def test_a_question_during_the_scrape_leaves_open_what_was_dropped(
    web: Web, sink: Recorder
) -> None:
    series = iter((KNOWN, MORE, *(MORE for _ in range(1000))))
    assert await sought(web, sink, b'known{a="b"} 1\n', series) is None


async def sought(web: Web, sink: Recorder, page: bytes, series: Iterator[frozenset[str]]) -> object:
    """Return what the first page of a server was read for."""
    web.replies["/metrics"] = answer(page)
    target = ScrapeTarget(web.url(), pod=PodRef("ml", "llm"), serves=True)
    made = ScrapeSource(replace(OPTIONS, targets=(target,)), sink, wanted=lambda _: next(series))
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
    return sink.results[0].sought
