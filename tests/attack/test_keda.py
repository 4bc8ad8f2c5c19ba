"""Attacks on the port that KEDA asks, by somebody who can reach it and needs no credential."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack

import grpc
import pytest

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.service import NAME
from tests.adapter.answers.keda.client import serialize
from tests.attack.siege import Siege

SECONDS = "6"
CONNECTIONS = 2000


def keda_port(siege: Siege) -> int:
    return int(siege.serving.wait_for("listening for KEDA")["port"])


def flood(siege: Siege, kind: str) -> str:
    """Attack from a process of its own: the observer shares this one's interpreter."""
    command = [sys.executable, "-m", "tests.attack.scalerflood", str(keda_port(siege)), kind]
    done = subprocess.run(
        [*command, SECONDS], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FLOODS = {
    "selectors-of-1000-bytes": "OK",
    "selectors-of-8000-bytes": "INVALID_ARGUMENT",
    "selectors-of-15000-bytes": "INVALID_ARGUMENT",
    "names-of-15000-bytes": "INVALID_ARGUMENT",
    "messages-of-200000-bytes": "RESOURCE_EXHAUSTED",
    "messages-of-60000-bytes": "RESOURCE_EXHAUSTED",
    "one-question-2000-at-once": "OK",
    "made-up-metrics": "INVALID_ARGUMENT",
    "streams": "",  # how many are open in time depends on the machine
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_of_calls(siege: Callable[..., Siege], kind: str) -> None:
    under = siege()
    assert FLOODS[kind] in flood(under, kind)
    under.verdict()
    assert len(under.serving.log) < 200


def test_requests_about_no_pods_while_no_value_changes(siege: Callable[..., Siege]) -> None:
    under = siege()
    under.lab.exporter.status = 500
    assert "OK" in flood(under, "devices-of-nobody")
    under.verdict()


def test_connections_that_say_nothing(siege: Callable[..., Siege]) -> None:
    under = siege()
    before = under.process.memory_info().rss
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", keda_port(under)), 10))
        under.observe(seconds=3)
        held = under.process.num_fds()
    assert held < 300
    assert under.verdict().peak - before < 30 << 20


def test_messages_that_are_not_protobuf_leave_no_traceback(siege: Callable[..., Siege]) -> None:
    under = siege()
    flood(under, "no-protobuf")
    under.verdict()
    assert not [entry for entry in under.serving.log if "Traceback" in str(entry)]


def test_a_trigger_is_answered_after_a_flood(siege: Callable[..., Siege]) -> None:
    under = siege()
    flood(under, "selectors-of-1000-bytes")
    metadata = {"metric": "DCGM_FI_DEV_GPU_UTIL", "target": "70", "podSelector": "app=inf"}
    ref = messages.ScaledObjectRef(name="so", namespace="ns", scalerMetadata=metadata)
    with grpc.insecure_channel(f"127.0.0.1:{keda_port(under)}") as channel:
        ask = channel.unary_unary(
            f"/{NAME}/GetMetrics", serialize, messages.GetMetricsResponse.FromString
        )
        answer = ask(messages.GetMetricsRequest(scaledObjectRef=ref), timeout=30)
    assert answer.metricValues[0].metricValueFloat == 80.0
    under.verdict()
