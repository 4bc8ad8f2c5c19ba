"""``replay hpa --fail``: what an HPA does while its values are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.hpa import ControllerOptions, from_manifest
from adapter.tools.replay.options import Failure
from adapter.tools.replay.study import Study, StudyOptions, study
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import START, Day, manifest, waves, write

HPA = manifest("50")
PERIOD = 60.0
AGE_LIMIT = 600
VALUES = {"window": 5, "collect_interval": 10, "age_limit": AGE_LIMIT}
HIDDEN = 1800.0
"""When values are missing, in seconds since the start: the load rises."""


def day(**changed: Any) -> Day:
    return Day(
        waves, syncs=300, period=PERIOD, hpa=HPA, settings={"values": VALUES}, boot=50, **changed
    )


def replayed(failure: Failure | None, recorded: Day | None = None) -> Study:
    options = StudyOptions(
        failure=failure, boot=PERIOD, controller=ControllerOptions(sync_period=PERIOD)
    )
    return study(recorded or day(), from_manifest(HPA), options)


def sizes(found: Study) -> dict[float, int]:
    run = found.runs[0]
    moments = run.moments if run.failed is None else run.failed.moments
    return {moment.time - START: moment.replicas for moment in moments}


def test_the_replicas_are_those_of_a_controller_without_values() -> None:
    """The controller of the silent day decided without values: the outage of an adapter."""
    silent = (HIDDEN, HIDDEN + 1200)
    really = replayed(None, day(silent=silent))
    hpa_study = replayed(Failure("adapter", 1200, START + HIDDEN))
    recorded = {m.time - START: m.replicas for m in really.recorded_moments}
    times = [second for second in recorded if HIDDEN <= second < HIDDEN + 1200]
    assert len(times) == 20
    assert {recorded[second] for second in times} == {sizes(hpa_study)[second] for second in times}
    assert max(sizes(replayed(None))[second] for second in times) > recorded[times[0]]
    run = hpa_study.runs[0]
    assert run.failed is not None
    assert run.failed.fewer > 0
    assert run.failed.outcome.over > run.outcome.over


def test_old_values_stay_until_the_age_limit() -> None:
    hpa_study = replayed(Failure("exporter", 1800, START + HIDDEN))
    assert hpa_study.outage is not None
    start, blind, end = (time - START for time in hpa_study.outage)
    assert start == HIDDEN
    assert HIDDEN + AGE_LIMIT - PERIOD <= blind <= HIDDEN + AGE_LIMIT + PERIOD
    assert HIDDEN + 1800 <= end <= HIDDEN + 1800 + 2 * PERIOD


def test_a_short_failure_is_bridged_by_old_values() -> None:
    hpa_study = replayed(Failure("exporter", 120, START + HIDDEN))
    assert hpa_study.outage is not None
    assert hpa_study.outage.blind == hpa_study.outage.end


def test_pages_of_servers_do_not_matter_to_a_metric_of_gpus() -> None:
    hpa_study = replayed(Failure("server", 1800, START + HIDDEN))
    run = hpa_study.runs[0]
    assert run.failed is not None
    assert hpa_study.outage is not None
    assert hpa_study.outage.start == hpa_study.outage.end
    assert [m.replicas for m in run.failed.moments] == [m.replicas for m in run.moments]


def test_the_worst_time_is_chosen_without_one() -> None:
    """The load rises fastest an hour after the start of each wave of four hours."""
    hpa_study = replayed(Failure("adapter", 1800))
    assert hpa_study.outage is not None
    begun = (hpa_study.outage.start - START) % (4 * 3600)
    assert 2400 <= begun <= 3600


def test_without_a_time_the_failure_begins_at_a_step() -> None:
    step = Day(
        lambda second: 120.0 if second < 7200 else 180.0,
        syncs=240,
        period=PERIOD,
        hpa=HPA,
        settings={"values": VALUES},
        start=4,
    )
    hpa_study = replayed(Failure("adapter", 1800), step)
    assert hpa_study.outage is not None
    assert hpa_study.outage.start - START == 7200 - PERIOD


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures")
    write(folder / "day.gma", day())
    (folder / "hpa.yaml").write_text(yaml.safe_dump(HPA))
    return folder


def replay(folder: Path, *arguments: str) -> Ended:
    files = ("--from", str(folder / "day.gma"), "-f", str(folder / "hpa.yaml"))
    return invoke("replay", "hpa", "ml/llm", *files, "--sync-period", "60s", *arguments)


def test_the_report_shows_the_failure_beside_each_row(folder: Path) -> None:
    page = folder / "report.html"
    done = replay(folder, "--fail", "exporter:30m", "--target", "60", "--html", str(page))
    assert done.code == 0, done.output
    rows = [line for line in done.output.splitlines() if line.startswith("  with the failure")]
    assert len(rows) == 2
    assert "fewer" in rows[0]
    assert "the failure at 2026-09-2" in done.output
    assert "the HPA sees old values until" in done.output
    html = page.read_text()
    assert html.count("<td>  with the failure</td>") == 2
    assert "Replicas around the failure" in html
    assert "<p>the failure is from 2026-09-2" in html
    report = json.loads(replay(folder, "--fail", "exporter:30m", "-o", "json").output)
    assert report["failure"]["start"] < report["failure"]["noValueFrom"] < report["failure"]["end"]
    failed = report["variants"][0]["withFailure"]
    assert failed["overLimitSeconds"] > report["variants"][0]["overLimitSeconds"]
    assert failed["replicasFewer"] > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("exporter", "'exporter': write exporter, server or adapter, and a time, such as"),
        ("node:10m", "'node:10m': write exporter, server or adapter, and a time, such as"),
        ("exporter:10", "'10': write a number and s, m, h or d, such as 10m"),
        ("exporter:0s", "'exporter:0s' takes no time: write exporter, server or adapter"),
        ("exporter:10m@noon", "'noon': write a time such as 2026-09-21T14:00"),
        ("exporter:10m@2020-01-01T00:00Z", "from 2020-01-01 00:00 on, and the recording is from"),
        ("exporter:9d", "and the recording is from 2026-09-21"),
    ],
)
def test_a_wrong_failure_is_named(folder: Path, given: str, said: str) -> None:
    done = replay(folder, "--fail", given)
    assert done.code == 2
    assert said in done.output
    assert "Traceback" not in done.output
