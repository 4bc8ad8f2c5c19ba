"""How much doctor reads at once, and for how long it waits."""

from __future__ import annotations

import asyncio

import pytest

from adapter.config.settings import Settings
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from adapter.tools.doctor import fetch, scrapes, store
from adapter.tools.doctor.fetch import Fetched, Place, direct_fetcher
from tests.adapter.tools.doctor.clean import clean


async def test_an_address_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "SECONDS", 0.2)
    writers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/metrics"
    async with silent, direct_fetcher() as fetcher:
        answer = await fetcher.fetch(Place("pods", "a", "b", url), 1000)
        for writer in writers:
            writer.close()
    assert (answer.status, answer.error) == (0, "no answer in time")


class Crowd:
    """Counts the reads in progress; each ends when no further one begins."""

    def __init__(self) -> None:
        self.now = self.most = self.all = 0

    async def fetch(self, place: Place, most: int) -> Fetched:
        self.all += 1
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(100):
            await asyncio.sleep(0)
        self.now -= 1
        return Fetched(404, b"")


async def test_some_pages_are_read_at_the_same_time() -> None:
    facts = clean()
    (pod, *_) = facts.pods.read() or ()
    crowd, notes = Crowd(), list[str]()
    targets = [
        (pod, ScrapeTarget(f"http://10.0.0.{number}:9400/metrics", pod=PodRef("a", f"p{number}")))
        for number in range(100)
    ]
    await scrapes._pages(crowd, targets, 1000, 0.0, notes, "exporters")
    assert crowd.all >= 100
    assert crowd.most == 16
    assert isinstance(pod, SeenPod)


class Endless:
    """A Prometheus whose answer is longer than what is read."""

    async def fetch(self, place: Place, most: int) -> Fetched:
        return Fetched(200, b'{"status":"success","data":{"result":[' + b" " * 100, False)


async def test_a_long_answer_of_prometheus_is_not_decoded() -> None:
    settings = Settings.model_validate(
        {"source": {"kind": "prometheus", "prometheus": {"url": "http://prometheus.monitoring"}}}
    )
    answer = await store.ask(settings, Endless())
    assert answer.problem == "the answer is above 33554432 bytes"
