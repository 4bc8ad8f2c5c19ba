"""What docs/external-metrics.md says about labels and aggregates is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from adapter.answers.api.aggregate import Aggregate
from adapter.pipeline.attribution.serieslabels import DEVICE_LABELS, POD_LABELS
from adapter.pipeline.catalog.targetfit import AGGREGATE

PAGE = (Path(__file__).parents[2] / "docs" / "external-metrics.md").read_text(encoding="utf-8")


def cells(heading: str) -> list[str]:
    """The first column of the table below a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]


def test_every_label_is_there() -> None:
    named = {name for cell in cells("Labels") for name in re.findall(r"`(\w+)`", cell)}
    assert named == {*DEVICE_LABELS, *POD_LABELS, AGGREGATE, "app"}


def test_every_aggregate_is_there() -> None:
    shown = cells("One series over the pods")
    assert {name for cell in shown for name in re.findall(r"`(\w+)`", cell)} == set(Aggregate)


def test_the_manifests_are_ones() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    (metric,) = yaml.safe_load(blocks[1])["metrics"]
    assert metric["external"]["target"]["type"] == "AverageValue"
