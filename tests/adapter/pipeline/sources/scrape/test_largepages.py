"""Server pages that are larger than one page may be: what is read of them, and what is said."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.sources.scrape import largepages
from adapter.pipeline.sources.scrape.largepages import MOST_BYTES, MOST_LINES
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget, TargetState
from tests.adapter.pipeline.sources.conftest import Recorder, Web, answer, running, settled
from tests.adapter.world import CATALOG

OPTIONS = ScrapeOptions(interval=0.02, timeout=30.0, max_backoff=0.04)
WAITING = "vllm:num_requests_waiting"
RANKS = 64


def ranks(others: int) -> bytes:
    """A page of data-parallel ranks, each with one known series and others that nobody reads."""
    lines = ["# HELP x A histogram.", "# TYPE x histogram"]
    for rank in range(RANKS):
        lines.append(f'{WAITING}{{engine="{rank}",model_name="m"}} {rank}')
        lines += [f'x_bucket{{engine="{rank}",le="{n}",model_name="m"}} {n}' for n in range(others)]
    return "\n".join([*lines, ""]).encode()


def source(web: Web, sink: Recorder, options: ScrapeOptions = OPTIONS) -> ScrapeSource:
    target = ScrapeTarget(web.url(), pod=PodRef("ml", "llm"), serves=True)
    return ScrapeSource(replace(options, targets=(target,)), sink, wanted=lambda _: CATALOG.series)


async def failed(made: ScrapeSource) -> TargetState:
    async with running(made.run):
        await settled(lambda: sum(made.failures.values()) > 0)
        (state,) = made.states.values()
    return state


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("others", [400, 2000])
async def test_the_known_series_of_a_large_server_page_are_read(
    web: Web, sink: Recorder, others: int, packed: bool
) -> None:
    page = ranks(others)
    assert len(page) > OPTIONS.server_max_bytes
    headers = "Content-Encoding: gzip\r\n" if packed else ""
    web.replies["/metrics"] = answer(gzip.compress(page) if packed else page, headers=headers)
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) > 1)
    samples = sink.results[-1].samples
    assert [sample.value for sample in samples] == list(range(RANKS))
    assert {sample.name for sample in samples} == {WAITING}


async def test_a_server_page_of_many_short_lines_is_read(web: Web, sink: Recorder) -> None:
    page = ranks(1) + b"x 1\n" * 40_000
    assert len(page) < OPTIONS.server_max_bytes
    web.replies["/metrics"] = answer(page)
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert len(sink.results[-1].samples) == RANKS


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b'x{a="b"} 1\n' * (MOST_BYTES // 10), "too_large"),
        (b"\n" * (MOST_LINES + OPTIONS.server_max_bytes), "too_costly"),
        (f'{WAITING}{{engine="0",z="{"z" * 900}"}} 1\n'.encode() * 2000, "too_large"),
        (f'{WAITING}{{engine="0",engine="1"}} 1\n'.encode() * 7000, "too_costly"),
    ],
    ids=["bytes", "lines", "known series", "work"],
)
async def test_the_reason_of_a_page_beyond_a_bound_names_the_setting(
    web: Web, sink: Recorder, page: bytes, reason: str
) -> None:
    web.replies["/metrics"] = answer(page)
    state = await failed(source(web, sink))
    assert state.reason == reason
    assert state.last_error.endswith("; raise source.scrape.inference.max_bytes")
    assert sink.results == []


async def test_dropping_lines_takes_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, paused = 0.0, 0.0

    def clock() -> float:
        nonlocal now
        now += 0.0005
        return now

    async def sleep(seconds: float) -> None:
        nonlocal paused
        paused += seconds

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x 1\n" * 5000

    monkeypatch.setattr(largepages, "perf_counter", clock)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert await largepages.LargePages(lambda _: {"y"}).read(parts(), 1000, 1000, "ml") == b""
    assert paused / (paused + now) == pytest.approx(1 - largepages.SHARE, abs=0.1)


async def test_the_limits_of_a_page_grow_with_the_setting(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(f'{WAITING}{{engine="0",engine="1"}} 1\n'.encode() * 7000)
    options = replace(OPTIONS, server_max_bytes=4 * OPTIONS.server_max_bytes)
    async with running(source(web, sink, options).run):
        await sink.until(lambda: len(sink.results) > 0)


async def test_the_reason_of_an_exporters_page_names_its_own_setting(
    web: Web, sink: Recorder
) -> None:
    web.replies["/metrics"] = answer(b"x 1\n" * 1000)
    options = replace(OPTIONS, targets=(ScrapeTarget(web.url()),), max_bytes=1024)
    state = await failed(ScrapeSource(options, sink, wanted=lambda _: CATALOG.series))
    assert state.last_error == "the answer is above 1024 bytes; raise source.scrape.max_bytes"
