"""``doctor`` as a process on a real control plane: each fault is found, and nothing else."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapter.world import shared_page
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace, wait_available
from tests.e2e.chart import FOLDER
from tests.e2e.cluster import DEPLOYMENTS, Object, condition
from tests.e2e.doctorfaults import CHAT, FAULTS, MAIN_HPA, UNATTRIBUTED, exporter, holder
from tests.e2e.installation import values, workload
from tests.e2e.pagestand import made, stand
from tests.e2e.process import wait_until
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import autoscaler, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CHART = {
    "image": {"repository": IMAGE},
    "config": {"source": {"scrape": {"interval": "1s"}}, "values": {"collect_interval": "10s"}},
}


LAB = {"GMA003"}
"""The front-proxy CA of the lab is valid for a day."""


def doctor(site: Site, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command as its own process."""
    return subprocess.run(
        [sys.executable, "-m", "adapter", "doctor", *arguments],
        cwd=programs.ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def checked(site: Site, *arguments: str) -> dict[str, Any]:
    """What it finds, as JSON."""
    done = doctor(site, "-o", "json", "--kubeconfig", str(site.kubeconfig), *arguments)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == found["status"]
    return found


def found_by(report: dict[str, Any]) -> dict[str, list[str]]:
    """Id -> messages."""
    return {
        row["id"]: [each["message"] for each in row["findings"]]
        for row in report["checks"]
        if row.get("findings")
    }


@pytest.fixture(scope="module")
def lab(running_site: Site) -> Iterator[Site]:
    """The site with the chart, a workload that scales, and one that is switched off."""
    site = running_site
    into = (SERVICE, FOLDER, f"--namespace={NAMESPACE}", "--create-namespace")
    site.helm("install", *into, "--wait", "--timeout=5m", values=CHART)
    ensure_namespace(site.admin, CHAT)
    site.load.set(CHAT, 60)
    workload(site, CHAT, 2)
    site.admin.create(autoscaler(CHAT, low=1, high=3, metric="gpu_utilization"))
    idle = deployment(CHAT, 0)
    idle["metadata"]["name"] = "idle"
    idle["spec"]["selector"] = {"matchLabels": {"app": "idle"}}
    idle["spec"]["template"]["metadata"] = {"labels": {"app": "idle"}}
    site.admin.create(idle)
    second = autoscaler(CHAT, metric="gpu_utilization")
    second["metadata"]["name"] = second["spec"]["scaleTargetRef"]["name"] = "idle"
    site.admin.create(second)
    wait_available(site.admin)
    path = f"{DEPLOYMENTS.format(ns=CHAT)}/inference"
    site.admin.wait(path, lambda obj: obj["spec"]["replicas"] == 1, "it has scaled in", 180)
    wait_until(lambda: len(values(site, CHAT, "gpu_utilization")) == 1, "the pod has a value")
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )
    yield site
    site.clear()


def test_a_clean_cluster_has_no_finding(lab: Site) -> None:
    report = checked(lab)
    assert set(found_by(report)) == LAB
    assert report["status"] == 0
    # What a client outside the cluster cannot see, and the command that shows it.
    unknown = {row["id"]: row for row in report["checks"] if row["status"] == "unknown"}
    assert set(unknown) == {"GMA711", "GMA712", "GMA713", "GMA714"}
    assert all(row["command"].startswith("helm -n") for row in unknown.values())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_nothing_else(lab: Site, name: str) -> None:
    fault = FAULTS[name]
    with fault.make(lab):
        report = checked(lab)
        found = found_by(report)
        assert set(found) - fault.also - LAB == set(fault.ids), found


def test_the_support_file_has_no_secret_of_the_cluster(lab: Site, tmp_path: Path) -> None:
    """Markers in Secrets, ConfigMaps, variables and annotations: a search finds none of them."""
    markers = [f"Zmarker{number:03d}Z" for number in range(60)]
    meta = {"namespace": CHAT, "annotations": {"note": markers[50]}}
    objects: list[Object] = []
    for number in range(20):
        secret = {"kind": "Secret", "stringData": {"token": markers[number]}}
        config = {"kind": "ConfigMap", "data": {"text": markers[20 + number]}}
        named = {"apiVersion": "v1", "metadata": meta | {"name": f"m{number}"}}
        objects += [named | secret, named | config]
    pod = holder("noisy", "gpu-a")
    pod["metadata"]["annotations"] = {"gpu-metrics-adapter.io/path": f"/m?token={markers[51]}"}
    pod["metadata"]["labels"] = {"team": markers[52]}
    variables = [{"name": f"V{number}", "value": markers[40 + number]} for number in range(10)]
    pod["spec"]["containers"][0] |= {"env": variables, "args": ["--key", markers[53]]}
    file = tmp_path / "support.json"
    with made(lab, *objects, pod):
        lab.kubectl("-n", CHAT, "annotate", "hpa", "idle", f"note={markers[54]}", "--overwrite")
        wait_until(lambda: len(values(lab, CHAT, "gpu_utilization")) == 2, "the pod has a value")
        done = doctor(lab, "--kubeconfig", str(lab.kubeconfig), "--bundle", file)
    assert done.returncode == 0, done.stdout
    text = file.read_text()
    assert "noisy" in text
    assert [each for each in markers if each in text or encoded(each) in text] == []
    account = lab.kubeconfig.read_text()
    assert not any(len(word) > 40 and word in text for word in account.split())


def encoded(text: str) -> str:
    """As a Secret's data has it."""
    return base64.b64encode(text.encode()).decode()


def test_helm_test_runs_it_in_the_cluster(lab: Site) -> None:
    """As a Job with rights to read only; there it sees the adapter's own metrics too."""
    lab.helm("test", SERVICE, f"--namespace={NAMESPACE}", "--timeout=3m")
    log = lab.kubectl("-n", NAMESPACE, "logs", f"job/{SERVICE}-doctor", check=False).stdout
    runner = next(lab.folder.glob(f"pods/{NAMESPACE}_{SERVICE}-doctor*.log"))
    said = log or runner.read_text()
    assert "0 errors" in said, said
    assert "could not" not in said, said
    fine = {line.split()[1] for line in said.splitlines() if line.startswith(("√ ", "+ "))}
    assert fine >= {"GMA009", "GMA010", "GMA121", "GMA706", "GMA711", "GMA712", "GMA713"}, said
    left = lab.kubectl("get", "clusterroles", "--output=name").stdout
    assert f"{SERVICE}-doctor" not in left


def test_a_user_without_rights_gets_each_right_by_name(lab: Site) -> None:
    """The checks that need no right go on."""
    pair = lab.plane.user("stranger")
    config = lab.plane.write_kubeconfig("stranger", pair=pair)
    done = doctor(lab, "--kubeconfig", str(config))
    assert done.returncode == 0
    assert "√ GMA001" in done.stdout
    text = " ".join(done.stdout.split())
    assert "stranger may not list pods in the whole cluster" in text
    assert "kubectl create clusterrole" in text


def test_the_hidden_fault_of_an_exporter_without_a_mount(lab: Site) -> None:
    """Last: from now on the adapter scrapes exporters with a mount only, for ten minutes."""
    pod = exporter("gpu-a", "mounted")
    pod["spec"]["volumes"] = [{"name": "socket", "hostPath": {"path": "/var/lib/kubelet"}}]
    page = shared_page(UNATTRIBUTED).encode()
    with stand(lab, pod, 9400, page):
        found = set(found_by(checked(lab)))
    assert {"GMA106", "GMA109"} <= found
