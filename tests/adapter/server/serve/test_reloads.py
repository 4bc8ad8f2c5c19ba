"""Changes of the configuration file while `serve` runs."""

from __future__ import annotations

from tests.adapter.server.serve.conftest import Running
from tests.adapter.serving import PODS, eventually, values

REJECTED = "settings rejected; the previous settings stay active"


def test_a_settings_change_leaves_no_gap_in_the_values(running: Running) -> None:
    def window() -> int:
        (item,) = running.client.get(PODS).raise_for_status().json()["items"]
        return int(item["windowSeconds"])

    running.configure(values={"window": "10s"})
    eventually(lambda: window() == 10)
    since = running.configure(values={"window": "soon"})
    entry = running.serving.wait_for(REJECTED, since=since)
    assert "values.window: 'soon' is not a duration" in entry["problems"][0]
    assert window() == 10


def test_a_metric_added_to_the_file_is_served_and_discovered_without_a_restart(
    running: Running,
) -> None:
    client, group = running.client, PODS.partition("/namespaces/")[0]
    row = {"name": "half_busy", "series": "DCGM_FI_DEV_GPU_UTIL", "scale": 0.5}
    running.configure(metrics=[row])
    eventually(lambda: '"pods/half_busy"' in client.get(group).text)
    (item,) = client.get(PODS.replace("DCGM_FI_DEV_GPU_UTIL", "half_busy")).json()["items"]
    assert item["value"] == "40"
    since = running.configure(metrics=[{**row, "name": "gpu_utilization"}])
    entry = running.serving.wait_for(REJECTED, since=since)
    assert "metrics.0.name: is a name of the catalogue: choose another" in entry["problems"][0]


def test_a_changed_section_that_needs_a_restart_is_named(running: Running) -> None:
    since = running.configure(server={"drain": 1})
    entry = running.serving.wait_for("settings reloaded", since=since)
    assert entry["needs_restart"] == ["server"]


def test_a_secret_file_that_a_reload_cannot_read_keeps_the_values(running: Running) -> None:
    scrape = running.lab.config["source"]["scrape"]
    since = running.configure(source={"scrape": {**scrape, "bearer_token_file": "/no/token"}})
    entry = running.serving.wait_for(REJECTED, since=since)
    assert "bearer_token_file: /no/token cannot be read" in entry["problems"][0]
    assert values(running.client) == ["80"]
