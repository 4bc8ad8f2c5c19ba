"""What the pages on migration claim about arithmetic, names and rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from adapter.answers.keda.trigger import OWN, compile_trigger
from adapter.config.process.config import load
from adapter.hpa.observation import Observation, PodState
from adapter.hpa.spec import MetricKind, MetricSpec, MetricTarget, TargetKind
from adapter.pipeline.catalog import Catalog
from tests.proposals import propose

DOCS = Path(__file__).parents[2] / "docs"
KEDA = (DOCS / "migrate-from-keda-prometheus.md").read_text(encoding="utf-8")
PEER = (DOCS / "migrate-from-prometheus-adapter.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def table(page: str, first: str) -> list[list[str]]:
    """Rows of the table whose first heading this is."""
    lines = page.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def replicas(kind: TargetKind, value: float, pods: int) -> int:
    """What an HPA with an external metric and a target of 70 asks for."""
    metric = MetricSpec(MetricKind.EXTERNAL, "m", MetricTarget(kind, 70_000))
    seen = Observation(pods, [PodState(str(i)) for i in range(pods)], [])
    return propose(metric, [round(value * 1000)], seen, "default")[0]


@pytest.mark.parametrize("row", table(KEDA, "Pods at"), ids=lambda row: str(row[0]))
def test_replicas_are_what_the_hpa_computes(row: list[str]) -> None:
    values = [float(text) for text in row[0].split(",")]
    mean, count = sum(values) / len(values), len(values)
    average = replicas(TargetKind.AVERAGE_VALUE, sum(values), count)
    assert [int(cell) for cell in row[1:]] == [
        replicas(TargetKind.AVERAGE_VALUE, mean, count),
        replicas(TargetKind.VALUE, mean, count),
        average,
        average,
    ]


def test_the_new_trigger_is_accepted() -> None:
    triggers = [
        trigger["metadata"]
        for block in blocks(KEDA)
        for trigger in yaml.safe_load(block).get("triggers", ())
        if trigger["type"] == "external"
    ]
    (compiled,) = [compile_trigger(metadata, Catalog().metrics) for metadata in triggers]
    assert (compiled.metric, compiled.target, compiled.activation) == ("gpu_utilization", 70.0, 5.0)


def test_every_key_of_a_trigger_that_is_named_is_one() -> None:
    named = {key for row in table(KEDA, "`prometheus`") for key in re.findall(r"`(\w+)`", row[1])}
    settings = {"headers", "params", "auth", "ca_file", "timeout"}
    assert named - settings - {"scalerAddress", "fallback"} == set(OWN)


def served(page: str, tmp_path: Path) -> set[str]:
    """Names of the catalogue and of the page's own rows."""
    (shown,) = [b for b in blocks(page) if b.startswith(("# config.yaml", "# values.yaml"))]
    content = yaml.safe_load(shown)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(content.get("config", content)))
    return {row.name for row in load(file, environ={}).metrics} | set(Catalog().metrics)


def test_every_metric_in_place_of_a_query_is_served(tmp_path: Path) -> None:
    rows = table(KEDA, "`query`, over the workload's own pods")
    cells = [row[1].partition("`metricSelector")[0] for row in rows]
    named = [name for cell in cells for name in re.findall(r"`([\w:]+)`", cell)]
    assert len(named) == len(rows)
    assert set(named) <= served(KEDA, tmp_path)


def test_every_metric_in_place_of_a_rule_is_served(tmp_path: Path) -> None:
    """That the values are the same, too, is shown by tests/e2e/test_migration.py."""
    rows = table(PEER, "Rule | Name in both")
    named = {name for row in rows for cell in row[1:] for name in re.findall(r"`([\w:]+)`", cell)}
    assert len(rows) == 7
    assert named <= served(PEER, tmp_path)
