"""``explain hpa`` says what the HPA was in the last half hour."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapter.tools.explain import hpafacts
from apiservice.wire import instant
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.explain.cluster import NOW
from tests.adapter.tools.explain.situations import SITUATIONS

GROUP = "view.gpu-metrics-adapter.io"
PATH = f"/apis/{GROUP}/v1alpha1/namespaces/chat/gpuhistories/horizontalpodautoscaler.llm"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    monkeypatch.setattr(hpafacts, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as (server, file):
        SITUATIONS["headroom"].world.serve(server)
        yield server, file


def explained(lab: tuple[ApiServer, Path], *arguments: str) -> Ended:
    return invoke("explain", "hpa", "llm", "--kubeconfig", str(lab[1]), *arguments)


def words(ended: Ended) -> str:
    return " ".join(ended.output.split())


def history(metric: str = "gpu_utilization") -> dict[str, object]:
    count = 40
    states = [*["stuck"] * 10, *["healthy"] * 20, None, *["overloaded"] * 9]
    return {
        "metadata": {"name": "horizontalpodautoscaler.llm", "namespace": "chat"},
        "of": "HorizontalPodAutoscaler",
        "metric": metric,
        "start": instant.write(NOW - 60 * count + 1),
        "intervalSeconds": 60,
        "value": [*[5.0] * 10, *[54.3] * 20, None, *[92] * 9],
        "target": [70] * count,
        "current": [*[1] * 10, *[2] * 20, None, *[3] * 9],
        "desired": [3] * count,
        "state": states,
    }


def test_the_line_has_values_replicas_and_states_of_the_last_half_hour(
    lab: tuple[ApiServer, Path],
) -> None:
    lab[0].answers[PATH] = history()
    line = (
        "last 30 minutes: gpu_utilization 54.3 to 92 (target 70); replicas 2 to 3; "
        "overloaded 9 min; healthy 20 min; 1 min are not known"
    )
    assert line in words(explained(lab))


def test_memory_is_written_as_memory(lab: tuple[ApiServer, Path]) -> None:
    past = history(metric="gpu_memory_used_bytes")
    past |= {"value": [2**30] * 40, "target": [2**31] * 40}
    lab[0].answers[PATH] = past
    assert "gpu_memory_used_bytes 1Gi (target 2Gi)" in words(explained(lab))


def test_the_json_has_the_points(lab: tuple[ApiServer, Path]) -> None:
    lab[0].answers[PATH] = history()
    past = json.loads(explained(lab, "-o", "json").output)["past"]
    assert len(past["time"]) == len(past["value"]) == 30
    assert past["value"][-10] is None


def test_a_missing_right_is_a_note(lab: tuple[ApiServer, Path]) -> None:
    lab[0].answers[PATH] = forbidden("ana", "get", "gpuhistories", GROUP, "chat")
    assert "note: the past is not shown: " in words(explained(lab))


def test_an_adapter_that_keeps_no_past_is_not_mentioned(lab: tuple[ApiServer, Path]) -> None:
    text = words(explained(lab))
    assert "last 30 minutes" not in text
    assert "past" not in text
