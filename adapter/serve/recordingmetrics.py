"""Metrics of the recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.recording.recorder import Recorder
from apiservice.selfmetrics.families import counter, gauge

ACTIVE: Final = gauge(
    "gma_recording_active", "1 while the recording goes on; 0 once it ended; the log says why."
)
SIZE: Final = gauge("gma_recording_file_bytes", "Size of the recording's file.")
LEFT_OUT: Final = counter(
    "gma_recording_left_out_total", "Events that are too long for the recording."
)
FAMILIES: Final = (ACTIVE, SIZE, LEFT_OUT)


def recording_families(recorder: Recorder) -> Iterator[Metric]:
    """Yield the metrics of the recording."""
    yield ACTIVE.one(not recorder.stopped)
    yield SIZE.one(recorder.size)
    yield LEFT_OUT.one(recorder.left_out)
