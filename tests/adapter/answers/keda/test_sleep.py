"""Which ScaledObjects never wake their target from zero."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.answers.keda.manifest import read_scaledobject
from adapter.answers.keda.sleep import never_wakes

OWN = 'avg(DCGM_FI_DEV_GPU_UTIL{namespace="team",pod=~"llm-.*"})'


def prometheus(query: str) -> dict[str, Any]:
    return {"type": "prometheus", "metadata": {"query": query}}


@pytest.mark.parametrize(
    ("triggers", "low", "sleeps"),
    [
        ([prometheus(OWN)], 0, True),
        ([prometheus(OWN), {"type": "cpu", "metadata": {"value": "60"}}], None, True),
        ([prometheus(OWN)], 1, False),
        ([{"type": "cpu", "metadata": {"value": "60"}}], 0, False),
        ([prometheus(OWN), {"type": "cron", "metadata": {}}], 0, False),
        ([prometheus("sum(gateway_queue_length)")], 0, False),
        ([prometheus('avg(load{pod=~"other-.*"})')], 0, False),
        ([prometheus(f"{OWN} or sum(gateway_queue_length)")], 0, False),
        ([], 0, False),
    ],
)
def test_a_trigger_must_exist_without_pods(
    triggers: list[dict[str, Any]], low: int | None, sleeps: bool
) -> None:
    spec: dict[str, Any] = {"scaleTargetRef": {"name": "llm"}, "triggers": triggers}
    if low is not None:
        spec["minReplicaCount"] = low
    scaled = read_scaledobject({"metadata": {"name": "llm", "namespace": "team"}, "spec": spec})
    cause = never_wakes(scaled)
    assert (cause is not None) is sleeps
    if cause is not None:
        assert "minReplicaCount" in cause.fix
