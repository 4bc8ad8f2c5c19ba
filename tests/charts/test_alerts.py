"""The alerts, judged by Prometheus' own ``promtool``: they fire, and only when they should."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.alertcases import CASES, FIRES_AT, OVER_AT, WELL_AT, Case
from tests.charts.alertrules import alerts, rendered
from tests.needs import PROMTOOL, needed_by_fixture

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
@needed_by_fixture(PROMTOOL)
def promtool() -> str:
    return PROMTOOL.path()


def run(program: str, *arguments: str | Path) -> str:
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(folder: Path, rules: list[dict[str, Any]], name: str = "rules.yml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump({"groups": [{"name": "gma", "rules": rules}]}))
    return file


def rule_of(alert: str) -> dict[str, Any]:
    """The rule with its summary as the only annotation; the cases state its exact text."""
    (rule,) = (rule for rule in rendered() if rule["alert"] == alert)
    return {**rule, "annotations": {"summary": rule["annotations"]["summary"]}}


def check(case: Case, minute: int, *, fires: bool) -> dict[str, Any]:
    expected = {
        "exp_labels": {"severity": case.severity, **case.labels},
        "exp_annotations": {"summary": case.summary},
    }
    return {
        "eval_time": f"{minute}m",
        "alertname": case.alert,
        "exp_alerts": [expected] if fires else [],
    }


@pytest.fixture(scope="module")
def judged(promtool: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every story by its file, and what promtool said about it: one process judges all."""
    folder = tmp_path_factory.mktemp("stories")
    for number, case in enumerate(CASES):
        story = {
            "interval": "1m",
            "input_series": [{"series": key, "values": row} for key, row in case.series.items()],
            "alert_rule_test": [
                check(case, WELL_AT, fires=False),
                check(case, FIRES_AT, fires=True),
                check(case, OVER_AT, fires=False),
            ],
        }
        rules = write(folder, [rule_of(case.alert)], f"rules-{number}.yml")
        content = {"rule_files": [rules.name], "evaluation_interval": "1m", "tests": [story]}
        (folder / f"{number}.yml").write_text(yaml.safe_dump(content))
    files = [str(folder / f"{number}.yml") for number in range(len(CASES))]
    done = subprocess.run(
        [promtool, "test", "rules", *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    reports = (done.stdout + done.stderr).split("Unit Testing:")[1:]
    return {Path(text.split()[0]).stem: text for text in reports}


def test_each_fires_when_it_should_and_is_over_afterwards(
    judged: dict[str, str], subtests: pytest.Subtests
) -> None:
    for number, case in enumerate(CASES):
        with subtests.test(alert=case.alert, story=case.summary[:20]):
            assert judged[str(number)].split()[1:] == ["SUCCESS"]


def test_every_alert_has_its_story() -> None:
    assert {case.alert for case in CASES} == {rule["alert"] for rule in alerts()}


def test_promtool_finds_nothing_wrong(promtool: str, tmp_path: Path) -> None:
    rules = rendered(runbook="https://example.com/troubleshooting", selector='cluster="a"')
    output = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", write(tmp_path, rules))
    assert f"{len(rules)} rules found" in output


def test_every_alert_says_how_bad_it_is_and_what_users_see() -> None:
    for rule in alerts():
        assert rule["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert rule["summary"].endswith("."), rule["alert"]
        assert len(rule["description"].split()) > 10, rule["alert"]
        assert ("$threshold" in rule["expr"]) == ("threshold" in rule), rule["alert"]


def test_every_alert_has_its_runbook() -> None:
    """Under the anchor that its annotation names: a heading in lower case."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    anchors = {heading.lower() for heading in re.findall(r"^#+ (\w+)$", page, re.MULTILINE)}
    for rule in rendered():
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (DOCS.parent / file).read_text(encoding="utf-8") == page
        assert anchor in anchors


def test_every_alert_is_in_the_guide() -> None:
    page = (DOCS / "observability.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- `(Gpu\w+)` \((\w+)\): ", page, re.MULTILINE)
    assert listed == [(rule["alert"], rule["severity"]) for rule in alerts()]
