"""The support file: a search for any secret of the cluster in it finds nothing."""

from __future__ import annotations

import base64
import itertools
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.bundle import clean as cleaned
from adapter.tools.doctor.bundle import content, write
from adapter.tools.doctor.facts import Fact, SelfPage
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.runner import run
from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.clean import (
    clean,
    container,
    exporter,
    hpa,
    metric,
    node,
    own_workload,
    pod,
    stored,
)

NUMBERS = itertools.count(1000)


def marker() -> str:
    """A text that is nowhere else."""
    return f"Zmarker{next(NUMBERS)}Z"


def test_no_marker_of_the_cluster_is_in_the_file(tmp_path: Path) -> None:
    """Markers where a cluster keeps texts of its users."""
    marks: list[str] = []

    def secret() -> str:
        marks.append(marker())
        return marks[-1]

    facts = clean()
    env: list[dict[str, Any]] = [
        {"name": "HF_TOKEN", "value": secret()},
        {"name": "DCGM_EXPORTER_LISTEN", "value": secret()},
        {"name": "KUBERNETES_PASSWORD", "value": secret()},
    ]
    noisy = container(gpus=1, env=env, args=["--api-key", secret()], command=[secret()])
    notes = {
        "kubectl.kubernetes.io/last-applied-configuration": secret(),
        "gpu-metrics-adapter.io/path": f"/metrics?token={secret()}",
        "prometheus.io/path": secret(),
    }
    facts.pods = Fact(
        [
            *facts.pods.read(),
            pod("noisy", containers=[noisy], labels={"team": secret()}, annotations=notes),
            exporter("gpu-c", container={"env": env, "args": [secret()]}),
        ]
    )
    labels = {"owner": secret(), "example.org/key": secret()}
    facts.nodes = Fact([*facts.nodes.read(), node("gpu-c", labels=labels)])
    config = f"""
source:
  kind: prometheus
  prometheus:
    url: https://prometheus.example.org/{secret()}
    username: {secret()}
    password: {secret()}
    headers: {{X-Key: {secret()}}}
    params: {{key: {secret()}}}
    tenant: {secret()}
    matchers: cluster="{secret()}"
    query: {{utilization: 'up{{a="{secret()}"}}'}}
  scrape:
    bearer_token_file: /etc/{secret()}
    exporters: [{{name: {secret()}, selector: 'a={secret()}', port: metrics}}]
metrics: [{{name: {secret()}, series: a_{secret()}, labels: {{a: {secret()}}}}}]
"""
    release = own_workload(config)
    assert release.problems == ()
    facts.release = Fact(release)
    facts.store = Fact(stored())
    behavior = {"scaleUp": {"selectPolicy": "Max", "note": secret()}}
    message = f"Get https://user:{secret()}@api/x?sig={secret()}: Bearer {secret()}"
    condition = {"type": "ScalingActive", "status": "False", "reason": "FailedGetPodsMetric"}
    selector = {"matchLabels": {"app": secret()}}
    facts.hpas = Fact(
        [
            hpa(
                metric(selector=selector),
                behavior=behavior,
                status={"conditions": [condition | {"message": message}]},
            )
        ]
    )
    report = DoctorReport(run(facts), f"server https://{secret()}")
    file = tmp_path / "support.json"
    write(file, report, facts)
    text = file.read_text()
    for mark in marks:
        assert mark not in text, mark
        assert base64.b64encode(mark.encode()).decode() not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    whole = json.loads(text)
    assert {row["name"] for row in whole["nodes"]} == {"gpu-a", "gpu-b", "gpu-c"}
    assert "chat/noisy" in {f"{row['namespace']}/{row['name']}" for row in whole["pods"]}
    assert whole["adapter"]["settings"]["source"]["kind"] == "prometheus"


def test_invalid_settings_are_named_without_their_values() -> None:
    facts = clean()
    facts.release = Fact(own_workload("sharing: {policy: Zsecret}\nsource: {knd: Zother}\n"))
    facts.release = Fact(own_workload("sharing: {policy: Zsecret}\n"))
    text = json.dumps(content(DoctorReport(run(facts), ""), facts))
    assert "sharing.policy" in text
    assert "Zsecret" not in text


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefghijk",
        "token eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "https://user:hunter2@example.org/",
        "https://example.org/?sig=abcdefghijk",
        "password=hunter2",
        "-----BEGIN PRIVATE KEY-----\nabcdefghijk\n-----END PRIVATE KEY-----",
        "x" * 64,
    ],
)
def test_texts_of_others_lose_what_looks_like_a_credential(text: str) -> None:
    clean_text = cleaned(f"failed: {text}")
    assert "[removed]" in clean_text
    assert "hunter2" not in clean_text
    assert "abcdefghijk" not in clean_text
    assert cleaned("connection refused by 10.0.0.7:9400") == "connection refused by 10.0.0.7:9400"


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    facts = clean()
    with pytest.raises(ClientError, match="cannot be written"):
        write(tmp_path / "none" / "a.json", DoctorReport(run(facts), ""), facts)
    manifest = tmp_path / "a.yaml"
    manifest.write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n")
    ended = invoke("doctor", "-f", str(manifest), "--bundle", str(tmp_path / "none" / "b.json"))
    assert ended.code == 2
    assert len(ended.output.splitlines()) == 1


def test_labels_of_own_metrics_lose_what_looks_like_a_credential() -> None:
    labels = (("exporter", "http://user:hunter2@10.0.0.1:9400/metrics"),)
    page = SelfPage("gma-1", {("gma_exporter_up", labels): 1.0})
    facts = clean()
    facts.self_pages = Fact([page])
    metrics = content(DoctorReport(run(facts), "server"), facts)["self_metrics"]
    assert metrics[0]["samples"] == [
        ["gma_exporter_up", {"exporter": "http://[removed]10.0.0.1:9400/metrics"}, 1.0]
    ]
