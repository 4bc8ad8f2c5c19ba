"""Load traces: a made-up record, and the recorded one where it is."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from research.traces import (
    BUSIER,
    DAY,
    STEP,
    TARGET,
    Part,
    Trace,
    TracesMissingError,
    folder,
    load_traces,
    many_days,
)
from tests.needs import TRACES
from tests.research import smalltraces


class Record(NamedTuple):
    """What is known about a record."""

    folder: Callable[[Path], Path]
    """Returns its folder; takes an empty one."""
    minutes: int
    """Of the duty cycles."""
    azure: range
    """Whole minutes of the arrivals."""
    busy: float
    """Seconds for which the recorded requests of the many days keep a GPU busy."""
    peak: range
    """Pods that the busiest minute of the many days needs at the target, rounded down."""


MADE_UP = Record(
    smalltraces.write_traces,
    smalltraces.MINUTES + 1,
    range(smalltraces.AZURE_MINUTES, smalltraces.AZURE_MINUTES + 1),
    smalltraces.DAYS * 96 * smalltraces.PER_QUARTER * smalltraces.REQUEST_SECONDS,
    range(1, 10),
)
RECORDED = Record(lambda _: folder(), 82_080 // 60 + 1, range(51, 60), 9930 * 26.24, range(20, 60))
RECORDS = {"made up": MADE_UP} | ({} if TRACES.missing() else {"recorded": RECORDED})


@pytest.fixture(scope="module", params=list(RECORDS.values()), ids=list(RECORDS))
def record(request: pytest.FixtureRequest) -> Record:
    """The made-up record, and the recorded one where it is."""
    chosen: Record = request.param
    return chosen


@pytest.fixture(scope="module")
def traces(record: Record, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    source = record.folder(tmp_path_factory.mktemp("traces"))
    return {trace.name: trace for trace in load_traces(source)}


def test_missing_traces_are_named_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_METRICS_SHARED_DATA", str(tmp_path))
    with pytest.raises(TracesMissingError, match="set GPU_METRICS_SHARED_DATA"):
        folder()


def test_every_trace_of_a_record_exists(traces: dict[str, Trace]) -> None:
    whole = [f"genai-{number}" for number in range(1, 5)]
    assert list(traces) == ["genai", *whole, "genai-qps", "azure-code", "azure-conv", "lora"]


def test_the_services_together_are_the_cluster(traces: dict[str, Trace]) -> None:
    parts = [traces[f"genai-{number}"].work for number in range(1, 5)]
    assert [sum(row) for row in zip(*parts, strict=True)] == pytest.approx(traces["genai"].work)


def test_a_trace_has_its_minutes(record: Record, traces: dict[str, Trace]) -> None:
    assert len(traces["genai"].work) == record.minutes
    assert len(traces["azure-code"].work) in record.azure


def test_made_up_duty_cycles_become_the_work_of_each_minute(tmp_path: Path) -> None:
    by_name = {trace.name: trace for trace in load_traces(MADE_UP.folder(tmp_path))}
    assert by_name["genai"].work[:3] == (210.0, 105.0, 210.0)
    assert by_name["genai-1"].work[:2] == (60.0, 30.0), "the first and the fifth pod"
    mean = (16 * 210 + 15 * 105) / 31
    even, odd = by_name["azure-code"].work[:2]
    assert (even, odd) == pytest.approx((mean * 4 / 3, mean * 2 / 3)), "2 and 1 of a mean of 1.5"


def test_constructed_data_becomes_minutes(tmp_path: Path) -> None:
    duty = "value,timestamp_anon,container_ip\n50.0,600.0,a\n70.0,657.0,a\n10.0,600.0,b\n"
    qps = "timestamp_anon,value,container_ip,request_type\n600.0,1,a,G\n600.0,9,,A\n660.0,3,a,G\n"
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
        f"2023-11-16 18:{minute}.9799600,1,1\n" for minute in ("17:03", "17:30", "18:10", "19:04")
    )
    lora = "gmt_create,exec_time_seconds\n2024-11-15 23:50:00,30.0\n2024-11-20 00:05:00,30.0\n"
    for name, text in {
        "gentd26_lora_requests_11d": lora,
        "gentd26_pod_gpu_duty_cycle": duty,
        "gentd26_qps": qps,
        "azure_llm_2023_code": azure,
        "azure_llm_2023_conv": azure,
    }.items():
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as stream:
            stream.write(text)
    by_name = {trace.name: trace for trace in load_traces(tmp_path)}
    assert by_name["genai"].work == (60.0,)
    assert by_name["genai"].begin == 600
    assert by_name["genai-qps"].work == (30.0, 90.0)
    assert by_name["azure-code"].work == (80.0, 40.0)
    days = by_name["lora"]
    assert len(days.work) == 4 * 24 * 60 + 30
    assert set(days.work[16:-15]) == {0.0}  # the last request may end in minute 15
    assert [(part.name, part.first, part.end) for part in days.parts] == [
        ("lora fit", 3 * 24 * 60 + 15, len(days.work)),
        ("lora judge", len(days.work), len(days.work)),
    ]


def test_requests_of_many_days_keep_their_times_and_their_work(
    record: Record, traces: dict[str, Trace]
) -> None:
    """The rate is scaled, not the work of a request."""
    days = traces["lora"]
    assert sum(days.work) / 100 * STEP == pytest.approx(BUSIER * record.busy, rel=0.02)
    assert int(max(days.work) / TARGET) in record.peak
    fit, judge = days.parts
    assert (fit.tuned_on, judge.tuned_on) == (True, False)
    assert fit.end == judge.first
    assert (days.begin + judge.first * STEP) % DAY == 0


def test_the_drawing_is_the_same_every_time(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as stream:
        stream.write("gmt_create,exec_time_seconds\n")
        for number in range(2000):
            day, hour = 15 + number // 1000, number % 24
            stream.write(f"2024-11-{day} {hour:02}:05:00,{number % 7 + 1}.0\n")
    assert many_days(tmp_path / "a.csv.gz") == many_days(tmp_path / "a.csv.gz")


def test_a_trace_without_parts_is_judged_as_a_whole() -> None:
    trace = Trace("a", (70.0,) * 3, True, 0.0)
    assert trace.parts == (Part("a", True, 0, 3),)
