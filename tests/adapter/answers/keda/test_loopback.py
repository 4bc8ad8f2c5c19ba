"""Addresses of triggers that name KEDA's own pod."""

from __future__ import annotations

import pytest

from adapter.answers.keda.manifest import read_scaledobject
from adapter.answers.keda.trouble import ScaledFacts, causes_of_scaled


@pytest.mark.parametrize(
    ("key", "address", "own"),
    [
        ("serverAddress", "http://localhost:9090", True),
        ("serverAddress", "http://127.0.0.1:9090/prom", True),
        ("scalerAddress", "[::1]:6000", True),
        ("serverAddress", "http://localhost.monitoring.svc:9090", False),
        ("serverAddress", "http://prometheus.monitoring.svc:9090", False),
    ],
)
def test_an_address_of_keda_itself_comes_first(key: str, address: str, own: bool) -> None:
    failed = {"type": "Ready", "status": "False", "reason": "TriggerError", "message": "triggers"}
    trigger = {"type": "prometheus", "metadata": {key: address}}
    spec = {"scaleTargetRef": {"name": "llm"}, "minReplicaCount": 1, "triggers": [trigger]}
    meta = {"name": "llm", "namespace": "team"}
    scaled = read_scaledobject({"metadata": meta, "spec": spec, "status": {"conditions": [failed]}})
    cause = causes_of_scaled(ScaledFacts(0.0, scaled))[0]
    assert (f"spec.triggers[0].metadata.{key} is {address}" in cause.text) is own
    assert ("connection refused" in cause.text) is own
