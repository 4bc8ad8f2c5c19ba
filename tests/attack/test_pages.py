"""Pages of pods that opt in to be scraped, which anybody who may create a pod can write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.attack.siege import Siege, exporter_pod, tenant_pod

SECONDS = 11.0
AGE_LIMIT = 8.0
"""Seconds without a good page of the victim's exporter after which the victim has no value."""
PODS = {
    "blank-runs": 1,
    "long-names": 2,
    "new-names": 2,
    "new-labels": 8,
    "small-new-labels": 8,
    "many-times": 8,
    "bad-numbers": 1,
    "gzip-of-16-megabytes": 64,
    "gzip-of-line-feeds": 1,
    "small-gzip-of-line-feeds": 64,
    "continues": 5,
    "second-head": 64,
    "silence": 64,
    "big-bad-numbers": 1,
    "big-long-names": 2,
}


@contextmanager
def pages(kind: str, count: int) -> Iterator[list[int]]:
    """Serve hostile pages from a process of its own; yields their ports."""
    command = [sys.executable, "-m", "tests.attack.hostilepages", kind, str(count), "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield [int(port) for port in process.stdout.readline().split()]
        finally:
            process.kill()


@pytest.mark.parametrize("kind", PODS)
def test_a_hostile_page_affects_only_the_pod_that_serves_it(
    siege: Callable[..., Siege], kind: str
) -> None:
    with pages(kind, PODS[kind]) as ports:
        pods = [tenant_pod(f"p{port}", port) for port in ports]
        attacked = siege(*pods, values={"age_limit": AGE_LIMIT, "window": 2})
        attacked.observe(SECONDS)
        assert attacked.verdict().answers


@pytest.mark.parametrize(("kind", "count"), [("new-devices", 32), ("times-beside-pods", 8)])
def test_an_exporter_page_does_not_block_the_event_loop(
    siege: Callable[..., Siege], kind: str, count: int
) -> None:
    with pages(kind, count) as ports:
        pods = [exporter_pod(f"p{port}", port, f"node-{port}") for port in ports]
        attacked = siege(*pods)
        before = late(attacked)
        attacked.observe(SECONDS)
        after = late(attacked)
        attacked.verdict()
    looks, slow = (now - then for now, then in zip(after, before, strict=True))
    # It was late in a third of the looks, of which there were few.
    assert looks > SECONDS
    assert slow <= looks / 10


def late(attacked: Siege) -> tuple[float, float]:
    """How often the loop's lag was looked at, and how often it was above a quarter second."""
    with attacked.serving.client() as client:
        text = client.get("/metrics").raise_for_status().text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if "event_loop_lag" in line)
    looks = float(samples["gma_event_loop_lag_seconds_count"])
    return looks, looks - float(samples['gma_event_loop_lag_seconds_bucket{le="0.25"}'])
