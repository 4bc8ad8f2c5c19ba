"""A process takes the history of another replica through the view API."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from structlog.testing import capture_logs

from adapter.answers.history.ring import HistoryRing, subject
from adapter.answers.view.historyhours import HISTORYHOURS, HistoryHours
from adapter.server.serve import pastreader
from adapter.server.serve.pastreader import PastReader
from apiservice.kube.client import ClusterAnswerError
from apiservice.runtime.steps import WaitingSteps, at_once, run_in_slices
from apiservice.view.endpoint import render_page
from apiservice.view.negotiation import negotiate
from apiservice.view.options import TableOptions, list_options
from apiservice.view.presentation import presentation
from apiservice.view.resource import ServedResource, ViewGroup
from apiservice.view.selection import KeyLists, select

LLM = subject("hpa", "llm", "chat")
FIRST = 30_000_000


class Replica:
    """Another process, asked as the API server would."""

    def __init__(self, minutes: int) -> None:
        self.ring = HistoryRing()
        self.refusals = 0
        self.asked: list[str] = []
        for minute in range(minutes):
            at_once(self.ring.turn(FIRST + minute))
            self.ring.note(LLM, (float(minute), 70, 2, 2, 10), "m")

    async def ask(self, path: str) -> bytes:
        self.asked.append(path)
        if self.refusals:
            self.refusals -= 1
            raise ClusterAnswerError("GET: 503 no endpoints", 503, "")
        return await run_in_slices(self._page(path))

    def _page(self, path: str) -> WaitingSteps[bytes]:
        served = ServedResource(HISTORYHOURS, HistoryHours(self.ring))
        group = ViewGroup("view.gpu-metrics-adapter.io", "v1alpha1", (served,))
        query = {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}
        options = list_options(HISTORYHOURS, None, query)
        keys = yield from KeyLists().keys(served, None, options, 0.0)
        selection = yield from select(served, keys, options)
        form = negotiate(b"application/json")
        presented = presentation(group, served, form, TableOptions(), 0.0)
        return (yield from render_page(served, None, options, selection, presented, 0.0))


async def _run(replica: Replica, until: int) -> tuple[HistoryRing, list[str]]:
    ring = HistoryRing()
    reader = PastReader(replica.ask, ring, lambda: (FIRST + until) * 60.0)
    with capture_logs() as logs:
        await reader.take()
    return ring, [str(row["event"]) for row in logs]


async def test_all_hours_are_taken_and_the_open_one_goes_on() -> None:
    replica = Replica(150)
    ring, logs = await _run(replica, 150)
    assert logs == ["took the history of another replica"]
    assert len(replica.asked) == 3
    assert at_once(ring.turn(FIRST + 151))
    ring.note(LLM, (151.0, 70, 2, 2, 10), "m")
    past = ring.read(LLM, 1440)
    assert past is not None
    assert past.columns["value"] == [*range(150), None, 151]


async def test_a_replica_that_is_not_there_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pastreader, "_PAUSE", 0.0)
    replica = Replica(5)
    replica.refusals = 3
    ring, logs = await _run(replica, 5)
    assert logs == ["took the history of another replica"]
    assert ring.read(LLM, 60) is not None


async def test_without_another_replica_the_history_begins_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pastreader, "_PAUSE", 0.0)
    replica = Replica(5)
    replica.refusals = 1000
    ring, logs = await _run(replica, 5)
    assert logs == ["no history of another replica"]
    assert len(replica.asked) == 20
    assert ring.read(LLM, 60) is None


async def test_an_answer_of_another_form_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pastreader, "_PAUSE", 0.0)

    class Odd(Replica):
        async def ask(self, path: str) -> bytes:
            return msgspec.json.encode({"metadata": {}, "items": [{"version": "x"}]})

    replica = Odd(1)
    ring, logs = await _run(replica, 1)
    assert logs == ["no history of another replica"]
    assert ring.size == 0
