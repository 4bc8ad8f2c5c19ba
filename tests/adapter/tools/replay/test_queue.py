"""``replay hpa``: which metric shows that requests wait."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.replay.queuemetric import QueueEvidence, probability_higher
from adapter.tools.replay.queuereport import QUEUE_TITLE, queue_basis, queue_rows, saturated_text
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import PERIOD, Day, ServerDay, manifest, waves, write
from tests.examples import bounded

Values = st.lists(st.integers(0, 20), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of servers whose requests wait from 80 % on, and one of pods without a server."""
    folder = tmp_path_factory.mktemp("queue")
    hpa = manifest("75")
    write(folder / "servers.gma", ServerDay(waves, hpa=hpa))
    write(folder / "pods.gma", Day(waves, hpa=hpa))
    write(
        folder / "short.gma",
        ServerDay(lambda second: 5000.0 * (second > 20_000), syncs=120, hpa=hpa),
    )
    (folder / "hpa.yaml").write_text(yaml.safe_dump(hpa))
    return folder


def replay(folder: Path, day: str, *arguments: str) -> Ended:
    files = ("--from", str(folder / f"{day}.gma"), "-f", str(folder / "hpa.yaml"))
    return invoke("replay", "hpa", "ml/llm", *files, "--sync-period", f"{PERIOD:g}s", *arguments)


def found(folder: Path, day: str) -> dict[str, Any]:
    done = replay(folder, day, "-o", "json")
    assert done.code == 0, done.output
    made: dict[str, Any] = json.loads(done.output)
    return made


def test_metrics_are_compared_by_the_requests_that_wait(folder: Path) -> None:
    queue = found(folder, "servers")["queue"]
    usage, running = queue["metrics"]
    assert usage["metric"] == "DCGM_FI_DEV_GPU_UTIL"
    assert running["metric"] == "inference_requests_running"
    # Requests wait exactly if the utilization is above 80; ten requests are 100 %, rounded.
    assert usage["withoutWaitingRequests"]["high"] <= 80 < usage["withWaitingRequests"]["low"]
    assert usage["probabilityHigher"] == 1
    assert 0.8 < running["probabilityHigher"] < 1
    assert 0 < queue["syncsWithWaitingRequests"] < queue["syncs"]
    assert queue["mostWaitingRequests"] % 4 == 0


def test_the_report_has_the_comparison(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = replay(folder, "servers", "--html", str(page))
    table = done.output.partition(QUEUE_TITLE)[2]
    assert "METRIC" in table
    assert "inference_requests_running" in table
    assert f"<h2>{QUEUE_TITLE}</h2>" in page.read_text()


def test_pods_without_a_server_have_no_comparison(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert "queue" not in found(folder, "pods")
    assert QUEUE_TITLE not in replay(folder, "pods", "--html", str(page)).output
    assert QUEUE_TITLE not in page.read_text()


def test_saturated_times_are_listed_with_the_requests_that_waited(folder: Path) -> None:
    (span,) = found(folder, "short")["saturated"]
    assert span["start"] < span["end"]
    text = " ".join(replay(folder, "short").output.split())
    assert "the pods did as much as they can: 2026-09-" in text
    # Ten requests run in each pod, and four wait.
    assert "40 for each 100 that ran: the demand was up to 40 % more than what is shown" in text


def test_without_a_queue_the_demand_is_known_from_below() -> None:
    assert saturated_text(None) == (
        "the demand was then at least what is shown, and may have been more"
    )


def evidence(**more: Any) -> QueueEvidence:
    return QueueEvidence(**{**dict.fromkeys(QueueEvidence._fields, 0), "signals": (), **more})


def test_saturated_pods_without_waiting_requests_show_the_demand() -> None:
    text = saturated_text(evidence(syncs=9, saturated=3))
    assert text == (
        "requests waited at 0 of 3 such syncs: the demand was hardly more than what is shown"
    )
    assert "may have been more" in saturated_text(evidence(syncs=9))


@dataclass(slots=True)
class PatientDay(ServerDay):
    """No request ever waits."""

    patience: float = 1000.0


def test_a_queue_that_is_always_empty_compares_nothing(folder: Path) -> None:
    write(folder / "patient.gma", PatientDay(lambda _: 300.0, hpa=manifest("75")))
    queue = found(folder, "patient")["queue"]
    assert queue["syncsWithWaitingRequests"] == 0
    assert {metric["probabilityHigher"] for metric in queue["metrics"]} == {None}
    text = replay(folder, "patient").output
    assert "requests waited at 0 of" in text
    assert "?" in text.partition(QUEUE_TITLE)[2]


@bounded(200)
@given(Values, Values)
def test_the_probability_counts_pairs(without: list[int], waiting: list[int]) -> None:
    pairs = [(a < b) + (a == b) / 2 for a in without for b in waiting]
    expected = sum(pairs) / len(pairs) if pairs else None
    assert probability_higher(sorted(without), waiting) == pytest.approx(expected)


def test_no_row_without_evidence_has_a_number() -> None:
    assert list(queue_rows(evidence())) == []
    assert next(queue_basis(evidence())) == "requests waited at 0 of 0 syncs"
