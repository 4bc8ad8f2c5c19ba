"""docs/troubleshooting.md explains every reason that is counted and every alert."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from adapter.hpa import Observation, PodState
from adapter.hpa.podreplicas import InvalidMetricError
from adapter.hpa.spec import MetricKind, MetricSpec, MetricTarget, TargetKind
from adapter.server.serve import reasons
from tests.proposals import propose

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ALERTS = ROOT / "charts" / "gpu-metrics-adapter" / "files" / "alerts.yaml"

TABLES = {
    "Why a sample or value was left out": reasons.REJECTS,
    "Why a scrape or query failed": (*reasons.FAILURES, *reasons.UNSCRAPABLE),
    "Refused connections and failed authentication": (*reasons.REFUSALS, *reasons.CREDENTIALS),
}


def section(heading: str) -> str:
    """What stands below a heading of the third level."""
    below = PAGE.partition(f"\n### {heading}\n")[2]
    assert below, heading
    return re.split(r"\n#{2,3} ", below)[0]


def explained(heading: str) -> list[str]:
    """The words before the colon of a section's items."""
    items = re.findall(r"^- (`[^:]+):", section(heading), re.MULTILINE)
    return [word for item in items for word in re.findall(r"`([\w-]+)`", item)]


@pytest.mark.parametrize("heading", TABLES)
def test_every_reason_and_no_other_is_explained_once(heading: str) -> None:
    assert sorted(explained(heading)) == sorted(TABLES[heading])


def test_every_alert_and_no_other_has_a_section() -> None:
    alerts = {rule["alert"] for rule in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))}
    shown = PAGE.partition("\n## Alerts\n")[2]
    assert set(re.findall(r"^### (\w+)$", shown, re.MULTILINE)) == alerts


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(#([\w-]+)\)", PAGE))))
def test_a_link_within_the_page_leads_somewhere(link: str) -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    assert link in {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_an_empty_answer_is_what_the_hpa_says_of_it() -> None:
    """The texts of the controller, as adapter.hpa has them."""
    metric = MetricSpec(
        MetricKind.PODS, "gpu_utilization", MetricTarget(TargetKind.AVERAGE_VALUE, 70_000)
    )
    seen = Observation(1, [PodState("a")], [])
    with pytest.raises(InvalidMetricError) as raised:
        propose(metric, {}, seen, "default")
    message = str(raised.value).rpartition(": ")[2]
    assert f"| `{message}` |" in PAGE
