"""Prefill follows decode, as docs/recipes/prefill-decode.md has it, on the real HPA controller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.recipes import FOLDER
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object
from tests.e2e.process import wait_until
from tests.e2e.queueing import CAPACITY, SLOTS, QueueingWorkload, autoscaler_of, scaled
from tests.e2e.queueserver import TOKENS
from tests.e2e.stage import Stage, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SPACE = "roles"
RUNNING = "inference_requests_running"
FOR_EACH = TOKENS * CAPACITY / 2
"""Tokens per second of all decode pods for which prefill has a replica: half of what one can do."""


@pytest.fixture
def decode(running_stage: Stage, tmp_path: Path) -> Iterator[QueueingWorkload]:
    """One replica of decode, which its own requests scale, and prefill, which follows it."""
    target = {"type": "AverageValue", "averageValue": f"{SLOTS - 1}"}
    own = {"type": "Pods", "pods": {"metric": {"name": RUNNING}, "target": target}}
    with scaled(running_stage, SPACE, autoscaler_of(SPACE, [own], 4, held=3), tmp_path) as workload:
        admin = running_stage.admin
        admin.create(_prefill())
        admin.create(_following())
        yield workload
        admin.delete(f"{HPAS.format(ns=SPACE)}/prefill")
        admin.delete(f"{DEPLOYMENTS.format(ns=SPACE)}/prefill")


def _prefill() -> Object:
    made = deployment(SPACE, 1)
    made["metadata"]["name"] = "prefill"
    template = made["spec"]["template"]
    for labels in (made["metadata"], template["metadata"]):
        labels["labels"] = {"app": "prefill"}
    made["spec"]["selector"] = {"matchLabels": {"app": "prefill"}}
    template["spec"]["containers"][0].pop("resources")
    return made


def _following() -> Object:
    """The HPA of the recipe. Here decode is called inference, and its servers are slower."""
    text = (FOLDER / "prefill-decode.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [spec] = [
        block for block in map(yaml.safe_load, blocks) if "output_tokens_per_second" in str(block)
    ]
    described = spec["metrics"][0]["object"]["describedObject"]
    target = spec["metrics"][0]["object"]["target"]
    assert (described["name"], target) == (
        "decode",
        {"type": "AverageValue", "averageValue": "3000"},
    )
    described["name"], target["averageValue"] = "inference", f"{FOR_EACH:.0f}"
    bounds = {"minReplicas": 1, "maxReplicas": 10}
    hpa = autoscaler_of(SPACE, [], 10, held=3)
    hpa["metadata"]["name"] = "prefill"
    hpa["spec"] |= spec | bounds
    return hpa


def test_prefill_has_replicas_for_the_tokens_that_decode_writes(
    running_stage: Stage, decode: QueueingWorkload
) -> None:
    admin = running_stage.admin

    def sizes() -> tuple[int, int]:
        path = DEPLOYMENTS.format(ns=SPACE)
        first, second = (admin.get(f"{path}/{name}") for name in ("inference", "prefill"))
        return first["spec"]["replicas"], second["spec"]["replicas"]

    # Nine tenths of what a replica of decode can do are 1.8 times the tokens of one of prefill.
    decode.rate = 0.9 * CAPACITY
    wait_until(lambda: sizes()[1] == 2, "prefill follows the tokens", 180)

    # Nearly twice as much: the tokens follow once decode has grown too.
    decode.rate = 1.9 * CAPACITY
    wait_until(lambda: sizes()[0] >= 2, "decode follows its requests", 180)
    wait_until(lambda: sizes()[1] == 4, "prefill keeps the ratio", 180)

    # Nothing to do: a true 0 tokens per second, and the smallest size of both.
    decode.rate = 0.0
    wait_until(lambda: sizes() == (1, 1), "both shrink", 180)
