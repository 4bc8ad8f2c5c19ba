"""Replacing the source and its store while they are in use."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import pytest

from adapter.config.process.config import ConfigError
from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from adapter.server.serve.pipeline import PipelineSwitcher
from tests.adapter.serving import Exporter


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    running = Exporter()
    yield running
    running.close()


def scraping(*exporters: Exporter, window: float = 30) -> Settings:
    targets = [{"url": exporter.url} for exporter in exporters]
    return Settings.model_validate(
        {"source": {"scrape": {"targets": targets}}, "values": {"window": window}}
    )


def dead() -> Settings:
    prometheus = {"url": "http://127.0.0.1:1", "interval": 0.2}
    return Settings.model_validate({"source": {"kind": "prometheus", "prometheus": prometheus}})


async def until(probe: Callable[[], bool], seconds: float = 90) -> None:
    async with asyncio.timeout(seconds):
        while not probe():  # noqa: ASYNC110 - what is waited for says nothing of itself
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(settings: Settings, *, synced: bool = True) -> AsyncIterator[PipelineSwitcher]:
    pods = PodIndex()
    if synced:
        pods.replace([])
    telemetry = PipelineSwitcher(Catalog(), ObjectLookup(pods, Services(), Nodes()))
    telemetry.use(settings)
    task = asyncio.create_task(telemetry.run())
    try:
        yield telemetry
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_settings_reverted_before_they_have_data_are_never_used(
    exporter: Exporter,
) -> None:
    async with running(scraping(exporter)) as telemetry:
        await until(lambda: telemetry.current.store.version > 0)
        first, wrong = telemetry.current, dead()
        telemetry.use(wrong)
        await asyncio.sleep(0.2)  # its source is running now, and finds no exporter
        assert telemetry.current is first
        telemetry.use(scraping(exporter))
        await until(lambda: telemetry.current is not first)
        assert telemetry.current.settings == scraping(exporter)


async def test_the_newest_of_several_settings_before_the_start_are_used(
    exporter: Exporter,
) -> None:
    async with running(scraping()) as telemetry:
        telemetry.use(scraping(exporter))
        await until(lambda: telemetry.current.store.version > 0)
        assert telemetry.snapshot.states.keys() == {exporter.url}


async def test_a_new_source_is_used_after_every_exporter_was_scraped(
    exporter: Exporter,
) -> None:
    async with running(scraping(exporter)) as telemetry:
        await until(lambda: telemetry.current.store.version > 0)
        others = [Exporter() for _ in range(5)]
        try:
            more = scraping(exporter, *others, window=10)
            telemetry.use(more)
            await until(lambda: telemetry.current.settings == more)
            assert len(telemetry.snapshot.states) == 6
        finally:
            for other in others:
                other.close()


async def test_a_missing_pod_list_does_not_prove_that_no_exporters_exist(
    exporter: Exporter,
) -> None:
    async with running(scraping(), synced=False) as telemetry:
        now = time.time()
        await asyncio.sleep(0)
        assert telemetry.problem(now, now) == "the pods have not been listed yet"
    exporter.status = 500
    async with running(scraping(exporter)) as telemetry:
        await until(lambda: telemetry.current.source.settled)
        assert "HTTP status 500" in str(telemetry.problem(now, now))
        assert telemetry.problem(now + 1000, now) is None


@pytest.mark.parametrize("status", [200, 500])
async def test_inference_servers_alone_are_enough_to_be_ready_once_each_was_read(
    exporter: Exporter, status: int
) -> None:
    exporter.status = status
    targets = [{"url": exporter.url, "pod": "ns/p0"}]
    settings = Settings.model_validate({"source": {"scrape": {"targets": targets}}})
    async with running(settings) as telemetry:
        now = time.time()
        await until(lambda: telemetry.current.source.settled)
        assert telemetry.problem(now, now) is None


async def test_inference_servers_that_answer_do_not_replace_exporters_that_fail(
    exporter: Exporter,
) -> None:
    targets = [{"url": exporter.url, "pod": "ns/p0"}, {"url": "http://127.0.0.1:1/metrics"}]
    settings = Settings.model_validate({"source": {"scrape": {"targets": targets}}})
    async with running(settings) as telemetry:
        now = time.time()
        await until(lambda: telemetry.current.source.settled)
        assert "1 of 1 exporters fail" in str(telemetry.problem(now, now))


async def test_the_first_values_are_served_when_it_is_ready(exporter: Exporter) -> None:
    async with running(scraping(exporter)) as telemetry, asyncio.timeout(60):
        started = time.time()
        while telemetry.problem(time.time(), started) is not None:
            assert telemetry.snapshot.version == 0  # keeps an empty snapshot fresh
            await asyncio.sleep(0)
        assert telemetry.current.store.version > 0
        assert telemetry.snapshot.version == telemetry.current.store.version


def with_row(settings: Settings, **row: object) -> Settings:
    return Settings.model_validate({**settings.model_dump(), "metrics": [row]})


async def test_a_user_metric_is_served_after_its_source_was_scraped(
    exporter: Exporter,
) -> None:
    async with running(scraping(exporter)) as telemetry:
        await until(lambda: telemetry.current.store.version > 0)
        before = telemetry.metrics
        telemetry.use(with_row(scraping(exporter), name="mine", series="my_series"))
        assert "mine" not in telemetry.metrics
        await until(lambda: "mine" in telemetry.metrics)
        assert telemetry.metrics is not before
        assert "mine" in telemetry.principal
        telemetry.use(scraping(exporter))
        await until(lambda: "mine" not in telemetry.metrics)


async def test_a_user_metric_that_the_source_cannot_provide_changes_nothing(
    exporter: Exporter,
) -> None:
    async with running(scraping(exporter)) as telemetry:
        wrong = with_row(scraping(exporter), name="lag", query="my_lag")
        with pytest.raises(ConfigError, match=r"metrics\.0\.query: needs source.kind prometheus"):
            telemetry.use(wrong)
        assert telemetry.current.settings == scraping(exporter)


async def test_a_snapshot_that_nobody_asks_for_is_released(exporter: Exporter) -> None:
    """It holds all values of its time, beside those of the store."""
    async with running(scraping(exporter)) as telemetry:
        await until(lambda: telemetry.current.store.version > 0)
        held = weakref.ref(telemetry.snapshot)
        telemetry.release()
        assert held() is not None, "in use"
        await asyncio.sleep(0.11)
        telemetry.release()
        version = telemetry.current.store.version
        await until(lambda: telemetry.current.store.version > version)  # it holds its own
        assert held() is None
