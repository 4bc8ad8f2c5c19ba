"""The true values of the simulated exporters, to check every answer.

A pod's used memory on its exporter's page encodes the pod's number and the time of the page. So an
answer shows its pod and the time of its measurement, regardless of its timestamp.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from tests.e2e.cluster import Object
from tests.e2e.exporter import MEMORY
from tests.e2e.kubelet import RunningPod

METRIC = "DCGM_FI_DEV_FB_USED"
_PER_POD = 10_000
_TICKS = 5.0
"""A second. Half an hour fits below a pod's number."""
_PODS = MEMORY // _PER_POD - 1


class Truth:
    """The memory of running pods, and the errors of an answer about it.

    Args:
        limit: maximum age of a value in seconds.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._numbers: dict[str, dict[str, int]] = {}
        """Namespace -> pod -> its number there, from 1; 0 is unused."""

    def used(self, pod: RunningPod) -> int:
        """MiB of the pod on the exporter's page now; see the module."""
        with self._lock:
            numbers = self._numbers.setdefault(pod.namespace, {})
            number = numbers.setdefault(pod.name, len(numbers) % _PODS + 1)
        return number * _PER_POD + int((time.monotonic() - self._begun) * _TICKS) % _PER_POD

    def complaints(self, item: Object, asked: float, ahead: float = 0.0) -> list[str]:
        """Return the errors of one item of an answer.

        Args:
            item: of a MetricValueList.
            asked: when the request was sent, by the monotonic clock. Values within the age
                limit at that time are correct.
            ahead: seconds by which the adapter's clock is ahead of the true time.
        """
        about = item["describedObject"]
        value, name = quantity(item["value"]), f"{about['namespace']}/{about['name']}"
        mib = value / 2**20 if value >= 2**30 else value
        number = self._numbers.get(about["namespace"], {}).get(about["name"])
        if number is None:
            return [f"{name}: no exporter has ever spoken of it"]
        if mib // _PER_POD != number:
            return [f"{name}: {item['value']} is not a value of this pod"]
        errors = []
        measured = self._begun + mib % _PER_POD / _TICKS
        # The page is written within a tick, and scraped within the scrape timeout.
        if asked - measured > self._limit + 2 / _TICKS:
            errors.append(f"{name}: measured {asked - measured:.1f} s before it was asked for")
        stamped = datetime.fromisoformat(item["timestamp"]).timestamp()
        if stamped > datetime.now(UTC).timestamp() + ahead + 1:
            errors.append(f"{name}: its timestamp {item['timestamp']} is in the future")
        return errors


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number."""
    for suffix, factor in (
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("Ki", 2**10),
        ("Mi", 2**20),
        ("Gi", 2**30),
    ):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)
