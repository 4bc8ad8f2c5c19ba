"""The chart's PrometheusRule and dashboard, and the pages of real processes they stand on."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.server.serve.selfmetrics import FAMILIES
from charts.generate.dashboard import BOARDS
from tests.charts.alertrules import rendered
from tests.charts.test_pages import IN_A_CLUSTER, OTHERS, names, used
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm, one, render
from tests.e2e.chartvalues import EVERYTHING, VALUES, WATCHED
from tests.e2e.cluster import Object
from tests.e2e.nodepoolstage import Controller
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def rules(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for group in groups(values) for rule in group["rules"]]


def groups(values: dict[str, Any], chart: Path = FOLDER) -> list[dict[str, Any]]:
    done = helm("template", SERVICE, chart, f"--namespace={NAMESPACE}", values=values)
    assert done.returncode == 0, done.stderr
    objects = [row for row in yaml.safe_load_all(done.stdout) if row is not None]
    rule_groups: list[dict[str, Any]] = one(objects, "PrometheusRule")["spec"]["groups"]
    return rule_groups


def promtool(*arguments: str | Path, text: str | None = None) -> str:
    done = subprocess.run(
        [programs.find(programs.PROMTOOL), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_helm_renders_the_rules_that_promtool_has_tested() -> None:
    assert rules(EVERYTHING) == rendered()


def test_promtool_finds_nothing_wrong_with_any_values(tmp_path: Path) -> None:
    checked = 0
    alerting = (row for row in VALUES.values() if row.get("alerts", {}).get("enabled"))
    for values in alerting:
        for row in render(values):
            if row["kind"] == "PrometheusRule":
                file = tmp_path / "rules.yml"
                file.write_text(yaml.safe_dump(row["spec"]))
                promtool("check", "rules", "--lint=all", "--lint-fatal", file)
                checked += 1
    assert checked > 2


def test_single_alerts_can_be_changed() -> None:
    made = {rule["alert"]: rule for rule in rules(WATCHED)}
    before = {rule["alert"]: rule for rule in rendered(selector='cluster="a"')}
    assert "GpuNodepoolBudgetExhausted" not in made
    assert made["Own"] == {"alert": "Own", "expr": "vector(1) > 0"}
    sooner = made["GpuMetricsAdapterCertificateExpiring"]
    assert sooner["expr"].endswith("< 86400")
    changed = made["GpuMetricsAdapterSourceDown"]
    assert (changed["for"], changed["labels"]) == ("1h", {"severity": "info", "team": "ml"})
    plain = made["GpuMetricsAdapterConfigRefused"]
    assert plain["expr"] == before["GpuMetricsAdapterConfigRefused"]["expr"]
    assert plain["annotations"]["runbook_url"] == (
        "https://runbooks.example/gpu#gpumetricsadapterconfigrefused"
    )


def test_the_alerts_of_workloads_are_a_group_that_can_be_turned_off() -> None:
    least: dict[str, Any] = {"alerts": {"enabled": True}}
    own, workloads = groups(least)
    assert workloads["name"] == f"{SERVICE}-workloads"
    assert [rule["alert"] for rule in workloads["rules"]] == [
        "GpuHpaOverloaded",
        "GpuHpaBehind",
        "GpuHpaStuck",
        "GpuPodsPending",
        "GpuMetricsAdapterDevicesIdle",
    ]
    least["alerts"]["workloads"] = {"enabled": False}
    assert groups(least) == [own]
    least["alerts"]["workloads"] = {"metrics": "queue_.*"}
    assert 'metric_name=~"queue_.*"' in groups(least)[1]["rules"][0]["expr"]


def test_the_runbook_is_at_the_home_of_the_chart(tmp_path: Path) -> None:
    """Without a home, the annotation has no link that leads nowhere."""
    least: dict[str, Any] = {"alerts": {"enabled": True}}
    copy = tmp_path / "chart"
    shutil.copytree(FOLDER, copy)
    file = copy / "Chart.yaml"
    chart = yaml.safe_load(file.read_text())

    def notes(home: str) -> dict[str, str]:
        file.write_text(yaml.safe_dump({**chart, "home": home}))
        first_notes: dict[str, str] = groups(least, copy)[0]["rules"][0]["annotations"]
        return first_notes

    page = "docs/troubleshooting.md#gpumetricsadapterabsent"
    assert notes("")["runbook"] == page
    given = notes("https://code.example/team/gma/")
    assert given["runbook_url"] == (
        f"https://code.example/team/gma/blob/v{chart['version']}/{page}"
    )
    assert "runbook" not in given


def test_alerts_of_disabled_features_are_left_out() -> None:
    least = {"alerts": {"enabled": True}, "keda": {"enabled": False}}
    alerts = {rule["alert"] for rule in rules(least | {"apiServices": {"create": False}})}
    assert not {name for name in alerts if name.startswith("GpuNodepool")}
    left_out = {"KedaErrors", "ExternalMetricsForeign", "APIServiceUnavailable"}
    assert not {f"GpuMetricsAdapter{name}" for name in left_out} & alerts
    (alert,) = [rule for rule in rules(least) if rule["alert"].endswith("APIServiceUnavailable")]
    assert "custom" in alert["expr"]
    assert "external" not in alert["expr"]


def test_an_alert_that_does_not_exist_is_refused() -> None:
    values = {"alerts": {"enabled": True, "rules": {"GpuMetricsAdapterAbsnt": {"disabled": True}}}}
    done = helm("template", "a", FOLDER, values=values)
    assert done.returncode != 0
    assert "GpuMetricsAdapterAbsnt" in done.stderr


@pytest.mark.parametrize("board", BOARDS)
def test_a_dashboard_reaches_grafana_unchanged(board: str) -> None:
    def maps(values: dict[str, Any]) -> Object:
        name = f"{SERVICE}-dashboard-{board}"
        config_map: Object = one(render(values), "ConfigMap", name)
        return config_map

    usual, changed = maps(EVERYTHING), maps(WATCHED)
    assert usual["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert usual["metadata"]["annotations"] == {"grafana_folder": "GPU"}
    assert changed["metadata"]["labels"]["grafana"] == "yes"
    assert changed["metadata"]["annotations"]["folder"] == "GPUs"
    assert changed["metadata"]["namespace"] == "charted"
    model = json.loads(usual["data"][f"gpu-metrics-{board}.json"])
    assert model == json.loads((FOLDER / "files" / f"dashboard-{board}.json").read_text())


def test_metrics_of_processes_in_a_cluster_include_those_of_the_alerts(stage: Stage) -> None:
    controller = Controller(stage.folder, "watched", stage.plane.kubeconfig, apply=False)
    controller.start()
    client = stage.adapter.client(stage.plane.proxy_client)
    # What another source than scraping has, and what this stage has switched off.
    off = ("gma_query", "gma_queries", "gma_keda", "gma_rule", "gma_delegate")
    quiet = {family.name for family in FAMILIES if family.name.startswith(off)}
    quiet |= IN_A_CLUSTER | {"gma_nodepool_history_ok", "gma_nodepool_pool_backoff"}
    asked = used(rule["expr"] for rule in rendered()) - quiet
    pages: list[str] = []

    def whole() -> bool:
        pages[:] = [client.get("/metrics"), controller.get("/metrics")[1]]
        return asked <= names(pages[0]) | names(pages[1])

    try:
        wait_until(lambda: "gma_gpu_pods_measured" in client.get("/metrics"), "pods are counted")
        wait_until(lambda: (controller.metric("gma_nodepool_rounds_total") or 0) > 0, "it plans")
        wait_until(whole, f"the pages have {sorted(asked)}")
    finally:
        client.close()
        controller.stop()
    for page in pages:
        assert promtool("check", "metrics", text=page) == ""
    shown = names(pages[0]) | names(pages[1])
    assert {name for name in shown if not name.startswith(("gma_", *OTHERS))} == set()
