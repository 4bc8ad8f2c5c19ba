"""The chart's alerts as the chart renders them, without Helm; a test of the chart compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[2] / "charts" / "gpu-metrics-adapter" / "files" / "alerts.yaml"
NAMESPACE = "gpu-metrics"
DEPLOYMENT = "gpu-metrics-adapter"
APISERVICES = "|".join(
    name.replace(".", r"\\.")
    for name in (
        "v1beta1.custom.metrics.k8s.io",
        "v1beta2.custom.metrics.k8s.io",
        "v1beta1.external.metrics.k8s.io",
        "v1alpha1.view.gpu-metrics-adapter.io",
    )
)
"""As a string literal of PromQL."""
METRICS = "(?i)(s[0-9]+-)?(gpu|inference|dcgm)_.*"
RUNBOOK = "docs/troubleshooting.md"
"""Where a chart without a home has it, in the repository."""

Rule = dict[str, Any]


def alerts() -> list[Rule]:
    """The file as it is."""
    rows: list[Rule] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return rows


def rendered(*, runbook: str = "", selector: str = "") -> list[Rule]:
    """All of them, as with every feature on and every other value at its default."""
    return [_rule(row, runbook, selector) for row in alerts()]


def _rule(row: Rule, runbook: str, selector: str) -> Rule:
    expr = (
        row["expr"]
        .replace("$threshold", str(row.get("threshold", "")))
        .replace("$selector", selector)
        .replace("$metrics", METRICS)
        .replace("$namespace", NAMESPACE)
        .replace("$deployment", DEPLOYMENT)
        .replace("$apiservices", APISERVICES)
    )
    notes = {
        "summary": row["summary"],
        "description": row["description"].replace("$namespace", NAMESPACE),
    }
    anchor = f"#{row['alert'].lower()}"
    if runbook:
        notes["runbook_url"] = runbook + anchor
    else:
        notes["runbook"] = RUNBOOK + anchor
    return {
        "alert": row["alert"],
        "expr": expr,
        "for": row["for"],
        "labels": {"severity": row["severity"]},
        "annotations": notes,
    }
