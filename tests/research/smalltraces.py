"""A small made-up record of load, in the form of the recorded traces.

Columns and the form of times are those that ``research/traces.py`` reads. The values follow
from the row's number, so the tests can say what must come out.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

PODS: Final = 6
"""More than the services among which they are dealt."""
MINUTES: Final = 30
"""Of the duty cycles, which begin at 600 s."""
AZURE_MINUTES: Final = 20
DAYS: Final = 13
"""Enough for the days on which policies are fitted and judged; they begin at 00:00."""
PER_QUARTER: Final = 2
REQUEST_SECONDS: Final = 30.0

_FIRST_DAY: Final = datetime(2026, 3, 2, tzinfo=UTC)


def write_traces(target: Path) -> Path:
    """Write every file of the record into a folder, and return the folder."""
    _write(target, "gentd26_pod_gpu_duty_cycle", "value,timestamp_anon,container_ip", _duty())
    _write(target, "gentd26_qps", "timestamp_anon,value,container_ip,request_type", _qps())
    for kind in ("code", "conv"):
        header = "TIMESTAMP,ContextTokens,GeneratedTokens"
        _write(target, f"azure_llm_2023_{kind}", header, _arrivals())
    _write(target, "gentd26_lora_requests_11d", "gmt_create,exec_time_seconds", _requests())
    return target


def _write(target: Path, name: str, header: str, rows: Iterable[str]) -> None:
    with gzip.open(target / f"{name}.csv.gz", "wt") as stream:
        stream.writelines(f"{line}\n" for line in (header, *rows))


def _duty() -> Iterable[str]:
    """Pod k is at 10 k percent in even minutes and at 5 k percent in odd ones."""
    for minute in range(MINUTES + 1):
        for pod in range(1, PODS + 1):
            value = 10.0 * pod if minute % 2 == 0 else 5.0 * pod
            yield f"{value},{600.0 + 60 * minute},10.0.0.{pod}"


def _qps() -> Iterable[str]:
    """1 and 3 requests per second in turn; a row without a pod is of none."""
    for minute in range(MINUTES + 1):
        time = 600.0 + 60 * minute
        yield f"{time},{1 + 2 * (minute % 2)},10.0.0.1,G"
        yield f"{time},9,,A"


def _arrivals() -> Iterable[str]:
    """Two requests in each even minute, one in each odd one; the last minute is not whole."""
    for minute in range(AZURE_MINUTES + 1):
        for second in (5, 35) if minute % 2 == 0 else (5,):
            yield f"2026-03-02 09:{minute:02}:{second:02}.1234567,812,64"


def _requests() -> Iterable[str]:
    for quarter in range(DAYS * 24 * 4):
        for number in range(PER_QUARTER):
            time = _FIRST_DAY + timedelta(minutes=15 * quarter + 5 * number)
            yield f"{time:%Y-%m-%d %H:%M:%S},{REQUEST_SECONDS}"
