"""The demo as a cluster: the real kubectl and the user commands against a running demo."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import programs
from tests.e2e.process import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
ADAPTER = (sys.executable, "-P", "-m", "adapter")


class RunningDemo:
    """A demo that plays, and its kubeconfig."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.kubeconfig = kubeconfig
        self.home = home

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the demo's kubeconfig."""
        own = {
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(self.home),
            "KUBECACHEDIR": str(self.home / "cache"),
            "COLUMNS": "120",
        }
        return subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, timeout=120, check=False
        )

    def kubectl(self, *arguments: str) -> str:
        """Return what kubectl prints; it must succeed without a warning."""
        done = self.run(str(programs.find(programs.KUBECTL)), *arguments)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def explained(self, *arguments: str) -> str:
        """Return what a command of the adapter prints; it could look."""
        done = self.run(*ADAPTER, *arguments)
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == ""
        return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    folder = tmp_path_factory.mktemp("demo")
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*ADAPTER, "demo", "--plain", "--seconds", "240", "--speed", "10"],
            env=os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:

        def text() -> str:
            assert process.poll() is None, (folder / "output").read_text()
            return (folder / "output").read_text()

        # The first decision: every HPA has a status from here on.
        wait_until(lambda: "HPA embed: 2 -> " in text(), "the first decision")
        named = re.search(r"^export KUBECONFIG=(.*)$", text(), re.MULTILINE)
        assert named
        yield RunningDemo(Path(named[1]), folder)
    finally:
        process.terminate()
        process.wait(60)


def test_kubectl_lists_what_the_demo_simulates(demo: RunningDemo) -> None:
    assert re.search(r"^h100-1\.gpu0 +h100-1 +0 +H100", demo.kubectl("get", "gpus"), re.MULTILINE)
    pods = demo.kubectl("get", "gpupods", "-A", "-o", "wide")
    assert re.search(r"^research +rerank-\w+ .* exporter_names_no_pod", pods, re.MULTILINE)
    # `serve` reads the status of an HPA some seconds after the decision.
    measured = re.compile(r"^deployment\.chat .* gpu_utilization \d", re.MULTILINE)
    wait_until(lambda: measured.search(demo.kubectl("get", "gpuworkloads")), "a measured HPA", 60)
    assert "kind: Gpu" in demo.kubectl("get", "gpu", "h100-1.gpu0", "-o", "yaml")
    nodes = demo.kubectl("get", "nodes", "-l", "agentpool=h100")
    assert re.search(r"^h100-1 +Ready +<none> +\d+", nodes, re.MULTILINE)
    running = demo.kubectl("get", "pods", "-l", "app=chat", "--no-headers")
    assert re.search(r"^chat-\w+ +1/1 +Running", running, re.MULTILINE)
    hpas = demo.kubectl("get", "hpa")
    assert re.search(r"^embed +Deployment/embed +[\dm]+/60 +1 +7 +\d", hpas, re.MULTILINE)
    assert "deployment.apps/chat" in demo.kubectl("get", "all")


def test_kubectl_describes_the_decision_of_an_hpa(demo: RunningDemo) -> None:
    text = demo.kubectl("describe", "hpa", "embed")
    assert re.search(r"ScalingActive +True +ValidMetricFound", text)
    assert re.search(r"SuccessfulRescale .* New size: \d+; reason: pods metric gpu_util", text)
    events = demo.kubectl("get", "events", "--field-selector", "reason=SuccessfulRescale")
    assert "horizontalpodautoscaler/embed" in events
    assert "Unhealthy" not in demo.kubectl("describe", "node", "h100-1")


def test_kubectl_discovers_documents_and_reads_raw(demo: RunningDemo) -> None:
    resources = demo.kubectl("api-resources", "--no-headers")
    for name in ("gpus", "gpupods", "gpuworkloads", "pods", "horizontalpodautoscalers"):
        assert re.search(rf"^{name} ", resources, re.MULTILINE)
    assert "windowSeconds" in demo.kubectl("explain", "gpus.values")
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/inference/pods/*/gpu_utilization"
    values = json.loads(demo.kubectl("get", "--raw", path))
    assert {row["describedObject"]["name"].split("-")[0] for row in values["items"]} == {
        "chat",
        "embed",
    }


@pytest.mark.long
def test_conformance_sees_an_hpa_scale_and_says_that_the_demo_is_simulated(
    demo: RunningDemo,
) -> None:
    watched = ("conformance", "embed", "-n", "inference", "--over", "100s", "--interval", "1")
    done = demo.run(*ADAPTER, *watched)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "**Simulated, not evidence for a platform**" in done.stdout
    assert re.search(r"^\| The HPA scales in \| PASS \| ", done.stdout, re.MULTILINE)
    assert '    status: ""\n' in done.stdout
    assert re.search(r"^\d replicas, \d wanted, \d running; gpu_utiliz", done.stderr, re.MULTILINE)


def test_a_write_is_refused(demo: RunningDemo) -> None:
    kubectl = str(programs.find(programs.KUBECTL))
    for command in (("scale", "deployment/chat", "--replicas=1"), ("delete", "hpa", "chat")):
        done = demo.run(kubectl, *command)
        assert done.returncode == 1
        assert "does not allow this method" in done.stderr


def test_explain_agrees_with_the_demos_own_hpa(demo: RunningDemo) -> None:
    def agreed() -> bool:
        """At a time without a scale in between."""
        status = json.loads(demo.kubectl("get", "hpa", "embed", "-o", "json"))["status"]
        report = json.loads(demo.explained("explain", "hpa", "embed", "-o", "json"))
        return bool(report["desiredReplicas"] == status["desiredReplicas"] == report["replicas"])

    wait_until(agreed, "agreement", 60)
    stuck = demo.explained("explain", "hpa", "rerank", "-n", "research")
    assert "exporter_names_no_pod" in stuck
    assert "DCGM_EXPORTER_KUBERNETES=true" in stuck
    assert re.search(
        r"^  0 +NVIDIA H100", demo.explained("explain", "node", "h100-1"), re.MULTILINE
    )
    pod = demo.kubectl("get", "pods", "-l", "app=embed", "-o", "name").split()[0]
    assert "MEASURED" in demo.explained("explain", "pod", pod.removeprefix("pod/"))


def test_a_plan_of_nodepool_is_printed(demo: RunningDemo) -> None:
    """The API server of the demo answers lists and no watch, as kubectl's raw requests do."""
    plan = demo.run(*ADAPTER, "nodepool", "--once")
    assert plan.returncode == 0, plan.stderr
    assert re.search(r"^inference +Deployment/chat +h100 ", plan.stdout, re.MULTILINE)


def test_idle_and_doctor_find_the_mistakes_of_the_story(demo: RunningDemo) -> None:
    # Two MIG instances, and their price; a GPU of another service may be idle too.
    priced = re.compile(r"Deployment/notebook .* 1\.47 ")
    wait_until(
        lambda: len(priced.findall(demo.explained("idle", "-A", "--min", "2s"))) == 2,
        "idle GPUs",
        60,
    )
    report = json.loads(demo.explained("doctor", "-o", "json"))
    statuses = {row["id"]: row["status"] for row in report["checks"]}
    assert statuses["GMA121"] != "ok", "the exporter of lab-1 names no pods"
