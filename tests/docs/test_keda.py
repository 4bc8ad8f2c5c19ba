"""What docs/keda.md shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from adapter.answers.keda.trigger import AGGREGATES, OWN, compile_trigger
from adapter.pipeline.catalog import Catalog

FOLDER = Path(__file__).parents[2] / "docs"
PAGE = (FOLDER / "keda.md").read_text(encoding="utf-8")


def test_the_first_trigger_is_accepted() -> None:
    manifest = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    (trigger,) = manifest["spec"]["triggers"]
    compiled = compile_trigger(trigger["metadata"], Catalog().metrics)
    assert (compiled.metric, compiled.target) == ("gpu_utilization", 70.0)


def test_every_key_and_aggregate_is_explained() -> None:
    section = PAGE.partition("## Metadata")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z]\w+)` \|", section, re.MULTILINE)) == set(OWN)
    assert {how.value for how in AGGREGATES} <= set(re.findall(r"`(\w+)`", section))
