"""An installation with only the README, and later operations."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.apiservice import (
    CHARTED,
    EXTERNAL,
    NAMESPACE,
    SERVICE,
    ensure_namespace,
    wait_available,
)
from tests.e2e.chart import FOLDER
from tests.e2e.cluster import DEPLOYMENTS, HPAS, RefusedError, condition
from tests.e2e.installation import (
    METRIC,
    Complete,
    apiservices,
    audited,
    block,
    everywhere,
    refusals,
    values,
    wait_keda,
    workload,
)
from tests.e2e.process import FailedError, wait_until
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import autoscaler
from tests.e2e.traffic import Asker, Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SERVE = f"app.kubernetes.io/name={SERVICE}"
INTO = (SERVICE, FOLDER, f"--namespace={NAMESPACE}")
NODEPOOL = f"app.kubernetes.io/name={SERVICE}-nodepool"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
QUICK: dict[str, Any] = {
    "image": {"repository": IMAGE},
    "config": {"source": {"scrape": {"interval": "1s"}}},
}
EVERYTHING = QUICK | {
    "config": {**QUICK["config"], "server": {"drain": 0}, "nodepool": {"interval": 1}},
    "externalMetrics": {"enabled": True},
    "nodepool": {"enabled": True, "apply": True},
    "keda": {"enabled": True},
}


def test_the_steps_of_the_readme_install_and_scale_an_hpa(site: Site) -> None:
    """Its commands and its manifest as they stand; only IMAGE is somebody's own."""
    site.shell(command("helm install").replace("IMAGE", IMAGE))
    workload(site, "default", 1)
    site.load.set("default", 200)
    site.kubectl("apply", "--filename=-", content=block("yaml", "HorizontalPodAutoscaler"))
    wait_available(site.admin)
    wait_until(lambda: values(site, "default"), "the pod has a value")
    answer = wait_until(lambda: answered(site, command("kubectl get --raw")), "it is answered")
    assert '"kind":"MetricValueList"' in answer.replace(" ", "")
    wait_size(site, 3)
    site.load.set("default", 0)
    wait_size(site, 1)
    site.admin.wait(
        f"{HPAS.format(ns='default')}/inference",
        lambda hpa: condition(hpa, "ScalingActive") == ("True", "ValidMetricFound"),
        "the HPA has its metric",
    )


def command(words: str) -> str:
    """Return the README's command that begins with these words, from the steps of an installation.

    The image is not built, and no command goes on for ever.
    """
    steps = block("sh", "image.repository=IMAGE") + block("sh", "kubectl get --raw")
    (step,) = (line for line in steps.splitlines() if line.startswith(words))
    return step


def answered(site: Site, command: str) -> str:
    """What a command says; nothing while it fails, as where a replica has no value yet."""
    try:
        return site.shell(command)
    except FailedError:
        return ""


def wait_size(site: Site, size: int) -> None:
    """Wait until the README's workload has this many pods, and its HPA wants no other."""

    def check() -> bool:
        status = site.admin.get(f"{HPAS.format(ns='default')}/inference").get("status", {})
        running = sum(pod.namespace == "default" for pod in site.kubelet.running())
        wanted = {status.get("desiredReplicas"), status.get("currentReplicas")}
        return wanted == {size} and running == size

    wait_until(check, f"the workload has {size} pods", 300)


def test_an_upgrade_and_a_rollback_answer_every_request(site: Site, tmp_path: Path) -> None:
    """Both replace every pod, under load from clients that ask as the HPA controller does."""
    site.helm("install", *INTO, "--create-namespace", "--wait", values=QUICK)
    ensure_namespace(site.admin, "used")
    workload(site, "used", 3)
    site.load.set("used", 150, expected=3)
    names = everywhere(site, "used", 3)
    controller = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    groups = ("system:serviceaccounts", "system:authenticated")
    clients: dict[str, Asker] = {
        f"client {number}": Complete(site.plane.client(controller, *groups), "used", names)
        for number in range(3)
    }
    newer = newer_chart(tmp_path)
    first = replaced(site, frozenset())
    with Traffic(clients) as traffic:
        traffic.wait_more(10)
        changed = QUICK | {"config": {"server": {"max_header_bytes": 65537}, **QUICK["config"]}}
        site.helm("upgrade", SERVICE, newer, f"--namespace={NAMESPACE}", "--wait", values=changed)
        second = replaced(site, first)
        traffic.wait_more(10)
        site.helm("rollback", SERVICE, f"--namespace={NAMESPACE}", "--wait")
        replaced(site, first | second)
        traffic.wait_more(10)
    assert not traffic.failed()
    (row,) = yaml.safe_load(site.helm("list", f"--namespace={NAMESPACE}", "--output=yaml").stdout)
    assert (row["revision"], row["chart"]) == ("3", f"{SERVICE}-0.1.0")


def replaced(site: Site, before: frozenset[str]) -> frozenset[str]:
    """Wait until `serve` is two ready pods and none of those before is left; returns the two."""

    def look() -> frozenset[str]:
        ready = {pod.name: pod.life.ready for pod in site.pods(SERVE)}
        well = len(ready) == 2 and all(ready.values()) and not before & ready.keys()
        return frozenset(ready) if well else frozenset()

    return wait_until(look, f"two pods and none of {sorted(before)}", 300)


def newer_chart(folder: Path) -> Path:
    """A copy of the chart that is one release further."""
    newer = folder / "chart"
    shutil.copytree(FOLDER, newer)
    file = newer / "Chart.yaml"
    chart = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(chart | {"version": "0.2.0"}))
    return newer


def test_every_feature_works_with_the_rights_of_the_chart_and_uninstalls_completely(
    site: Site,
) -> None:
    """`serve` answers KEDA too, `nodepool` keeps headroom, and both go with all that they had.

    While an APIService of the release points to somebody else's Service, it stays, and so does
    the release.
    """
    before, since = apiservices(site), audited(site)
    site.helm("install", *INTO, "--create-namespace", "--wait", values=EVERYTHING)
    wait_available(site.admin, (*CHARTED, *EXTERNAL))
    ensure_namespace(site.admin, "used")
    site.load.set("used", 80, expected=2)
    workload(site, "used", 2)
    hpa = autoscaler("used", low=2, metric=METRIC)
    hpa["metadata"]["annotations"] = {"gpu-metrics-adapter.io/headroom": "1"}
    site.admin.create(hpa)
    wait_until(lambda: len(values(site, "used")) == 2, "every pod has a value")
    for pod in site.pods(SERVE):
        wait_keda(pod.address)
    kept = f"{DEPLOYMENTS.format(ns=NAMESPACE)}?labelSelector=gpu-metrics-adapter.io%2Fheadroom"
    wait_until(lambda: site.admin.get(kept)["items"], "there is headroom")
    (row,) = site.admin.get(LEASES)["items"]
    assert row["spec"]["holderIdentity"].split("_")[0] in {p.name for p in site.pods(NODEPOOL)}
    assert refusals(site, since) == []
    the_tools_have_the_rights_of_the_example(site)

    theirs = "v1beta1.external.metrics.k8s.io"
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{theirs}"
    site.admin.patch(path, {"spec": {"service": {"namespace": "keda", "name": "keda"}}})
    away = ("uninstall", SERVICE, f"--namespace={NAMESPACE}", "--wait")
    assert site.helm(*away, check=False).returncode != 0
    assert apiservices(site)[theirs] == "keda/keda"
    site.admin.delete(path)
    site.helm(*away)
    assert apiservices(site) == before
    site.admin.delete("/api/v1/namespaces/used")
    wait_until(lambda: gone(site, "/api/v1/namespaces/used"), "the namespace is gone")
    site.helm("install", *INTO, values=EVERYTHING)
    wait_available(site.admin, (*CHARTED, *EXTERNAL))


def the_tools_have_the_rights_of_the_example(site: Site) -> None:
    """No command of docs/commands.md misses a right with the ServiceAccount that it shows."""
    site.shell("kubectl apply -f docs/examples/tools.yaml")
    since = audited(site)
    for command in (
        "explain hpa inference -n used",
        "explain workload inference -n used",
        *(f"explain pod {name} -n used" for name in values(site, "used")),
        "top --once",
        "top gpus",
        "top nodes",
        "top pods -A",
        "top workloads -A",
        "top hpas -A",
        "idle -A",
        "doctor -v",
    ):
        account = f"system:serviceaccount:{NAMESPACE}:gpu-tools"
        # The example does not let `doctor` read the pages of exporters and of the adapter.
        worst = 2 if command.startswith("doctor") else 1
        site.shell(f"{sys.executable} -m adapter --as {account} {command} || test $? -le {worst}")
    assert refusals(site, since) == []


def gone(site: Site, path: str) -> bool:
    try:
        site.admin.get(path)
    except RefusedError as error:
        return error.code == 404
    return False
