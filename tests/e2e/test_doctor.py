"""``doctor`` as a process on a real control plane: each fault is found, and nothing else."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiservice.tls.authority import read_authority
from tests.adapter.world import own_page
from tests.e2e.apiservice import NAMESPACE, SERVICE, ensure_namespace, wait_available
from tests.e2e.chart import FOLDER
from tests.e2e.cluster import DEPLOYMENTS, PODS, Object, condition
from tests.e2e.doctorcommand import checked, doctor, found_by
from tests.e2e.doctorfaults.every import FAULTS
from tests.e2e.doctorfaults.installation import RELEASE
from tests.e2e.doctorfaults.register import (
    CHAT,
    MAIN_HPA,
    THIRD,
    UNATTRIBUTED,
    WHOLE,
    configured,
    exporter,
    holder,
    real,
    third_node,
)
from tests.e2e.installation import values, workload
from tests.e2e.pagestand import made, patched, stand
from tests.e2e.printedcommands import run_printed
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import autoscaler, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CHART = {
    "image": {"repository": IMAGE},
    "config": {"source": {"scrape": {"interval": "1s"}}, "values": {"collect_interval": "10s"}},
}


CRONJOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{SERVICE}-certificates"
GPUS = "/apis/view.gpu-metrics-adapter.io/v1alpha1/gpus"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SERVE = f"app.kubernetes.io/name={SERVICE}"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

LAB = {"GMA003"}
"""The front-proxy CA of the lab is valid for a day."""


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
    report = checked(lab.kubeconfig)
    assert set(found_by(report)) == LAB
    assert report["status"] == 0
    # What a client outside the cluster cannot see, and the command that shows it.
    unknown = {row["id"]: row for row in report["checks"] if row["status"] == "unknown"}
    assert set(unknown) == {"GMA711", "GMA712", "GMA713", "GMA714"}
    assert all(row["command"].startswith("helm -n") for row in unknown.values())


SETTLED_WITHIN = 60.0
"""Seconds. On a busy machine the HPA controller or a kubelet may still be at work on what the test
before has removed."""


@pytest.mark.parametrize("name", [*FAULTS])
def test_a_fault_is_found_and_nothing_else(lab: Site, name: str) -> None:
    fault = FAULTS[name]
    deadline = time.monotonic() + SETTLED_WITHIN
    with fault.make(lab):
        while True:
            report = checked(lab.kubeconfig)
            findings = found_by(report)
            others = set(findings) - fault.also - LAB
            if others == set(fault.ids) or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert others == set(fault.ids), findings
        failing = _failing_commands(lab, report)
        assert failing == [], "\n".join(failing)


def _failing_commands(lab: Site, report: dict[str, Any]) -> list[str]:
    """Return the commands of the findings that do not run, each with what it says."""
    failed = []
    for row in report["checks"]:
        commands = {finding.get("command", "") for finding in row.get("findings") or ()} - {""}
        for command in (one for one in commands if "://" not in one):  # no way out from here
            done = run_printed(lab.kubeconfig, command)
            finds_nothing = "| grep" in command and done.returncode == 1 and not done.stderr
            if done.returncode and not finds_nothing:
                failed.append(f"{command}: {done.stderr or done.stdout}")
    return failed


REMOVED = [
    name
    for name, fault in FAULTS.items()
    if set(fault.ids) & {"GMA401", "GMA402", "GMA403", "GMA404", "GMA405", "GMA406", "GMA407"}
]
"""Faults whose objects the end of the fault sets back, also after they were corrected."""


@pytest.mark.parametrize("name", REMOVED)
def test_the_command_of_a_finding_removes_it(lab: Site, name: str) -> None:
    fault = FAULTS[name]
    with fault.make(lab):
        wait_until(lambda: set(fault.ids) <= set(found_by(checked(lab.kubeconfig))), "it is found")
        for row in checked(lab.kubeconfig)["checks"]:
            if row["id"] in fault.ids:
                (finding,) = row["findings"]
                done = run_printed(lab.kubeconfig, finding["command"], dry=False)
                assert done.returncode == 0, f"{finding['command']}\n{done.stderr}"
        wait_until(
            lambda: not set(fault.ids) & set(found_by(checked(lab.kubeconfig))), "it is gone"
        )


def test_the_hint_for_the_hpa_controller_grants_the_right(lab: Site) -> None:
    """Its own ClusterRole is bound, and has lost the rules."""
    path = f"{ROLES}/system:controller:horizontal-pod-autoscaler"
    rules = lab.admin.get(path)["rules"]
    kept = [row for row in rules if "custom.metrics.k8s.io" not in row.get("apiGroups", ())]
    with patched(lab, path, {"rules": kept}, {"rules": rules}):
        wait_until(
            lambda: "GMA009" in found_by(checked(lab.kubeconfig)), "the API server has noticed"
        )
        command = next(
            row["findings"][0]["command"]
            for row in checked(lab.kubeconfig)["checks"]
            if row["id"] == "GMA009"
        )
        # Objects of an earlier attempt do not stop it.
        for _ in range(2):
            words = lab.shell(command).split()
            granted = [word for word in words if word.startswith("clusterrole")]
            assert len(granted) == 2, words
        wait_until(
            lambda: "GMA009" not in found_by(checked(lab.kubeconfig)), "the right is granted"
        )
    lab.kubectl("delete", *granted)
    lab.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )


def test_an_address_that_the_proxy_refuses_is_not_taken_for_the_exporters_answer(
    lab: Site,
) -> None:
    with third_node(lab), made(lab, exporter()):
        path = f"{PODS.format(ns='gpu-operator')}/third"
        lab.admin.wait(path, lambda obj: obj["status"].get("phase") == "Running", "it runs")
        address = "127.0.0.77"
        status = {"podIP": address, "podIPs": [{"ip": address}]}
        lab.admin.patch(f"{path}/status", {"status": status})
        report = checked(lab.kubeconfig)
    assert set(found_by(report)) == LAB
    unknown = {row["id"]: row["reason"] for row in report["checks"] if row["status"] == "unknown"}
    for key in ("GMA103", "GMA104", "GMA105"):
        assert "pod gpu-operator/third" in unknown[key]
        assert "400 address not allowed" in unknown[key]


@pytest.fixture(scope="module")
def store(lab: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the exporters in several ways: the label ``case``."""
    dropping = {"action": "labeldrop", "regex": "exported_.*"}
    losing = {"action": "drop", "source_labels": ["__name__"], "regex": "DCGM_.*"}
    nodes = sorted(lab.exporters)
    ways: dict[str, tuple[list[str], list[Object]]] = {
        "clean": (nodes, []),
        "first_exporter": (nodes[:1], []),
        "second_exporter": (nodes[1:], []),
        "no_pods": (nodes, [dropping]),
        "no_series": (nodes, [losing]),
    }
    jobs: list[Object] = [
        {
            "job_name": case,
            "static_configs": [
                {
                    "targets": [f"{lab.exporters[node].host}:{lab.exporters[node].port}"],
                    "labels": {"case": case, "namespace": "gpu-operator", "pod": f"dcgm-{node}"},
                }
                for node in scraped
            ],
            "metric_relabel_configs": relabelings,
        }
        for case, (scraped, relabelings) in ways.items()
    ]
    total = sum(len(job["static_configs"]) for job in jobs)
    folder = tmp_path_factory.mktemp("store")
    server = Prometheus(folder, "doctor", {}, honor_labels=False, jobs=jobs)
    server.start()
    wait_until(lambda: server.count("scrape_samples_scraped > 0") == total, "it has scraped")
    yield server
    server.stop()


@pytest.mark.parametrize(
    ("case", "ids"),
    [
        ("clean", set[str]()),
        # The one pod runs on the node of either.
        ("first_exporter", {"GMA303"}),
        ("second_exporter", {"GMA303"}),
        ("no_pods", {"GMA305"}),
        ("no_series", {"GMA302"}),
    ],
)
def test_a_fault_of_prometheus_is_found_and_nothing_else(
    lab: Site, store: Prometheus, case: str, ids: set[str]
) -> None:
    chosen = f"{{url: '{store.url}', matchers: 'case=\"{case}\"'}}"
    with configured(lab, f"source: {{kind: prometheus, prometheus: {chosen}}}\n"):
        report = checked(lab.kubeconfig)
    assert set(found_by(report)) == ids | LAB
    rows = {row["id"]: row["status"] for row in report["checks"]}
    assert rows["GMA301"] == "fine"


def test_a_prometheus_that_does_not_exist_is_found(lab: Site) -> None:
    """Through the API server's proxy, as the URL names a Service."""
    url = "http://prometheus.monitoring.svc:9090"
    with configured(lab, f"source: {{kind: prometheus, prometheus: {{url: '{url}'}}}}\n"):
        findings = found_by(checked(lab.kubeconfig))
    assert set(findings) == {"GMA301"} | LAB
    assert "404" in findings["GMA301"][0]
    assert "not found" in findings["GMA301"][0]


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        ({}, set[str]()),
        ({"minReplicas": 0}, {"GMA408"}),
        ({"minReplicas": 9, "maxReplicas": 3}, {"GMA409"}),
    ],
)
def test_a_manifest_that_the_api_server_rejects_is_found_in_its_file(
    lab: Site, tmp_path: Path, change: dict[str, int], ids: set[str]
) -> None:
    hpa = autoscaler(CHAT, metric="gpu_utilization")
    hpa["metadata"]["name"] = "from-a-file"
    hpa["spec"] |= change
    workload_of = deployment(CHAT, 1) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    file = tmp_path / "manifests.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [workload_of, hpa]}))
    findings = found_by(json.loads(doctor("-o", "json", "-f", file).stdout))
    assert set(findings) - {"GMA451"} == ids  # the Deployment of the stage has spec.replicas
    alone = tmp_path / "hpa.json"
    alone.write_text(json.dumps(hpa))
    done = lab.kubectl("create", "--dry-run=server", "-f", str(alone), check=False)
    assert (done.returncode != 0) == bool(ids), done.stderr


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
        done = doctor("--kubeconfig", lab.kubeconfig, "--bundle", file)
    assert done.returncode == 0, done.stdout
    text = file.read_text()
    assert "noisy" in text
    assert [marker for marker in markers if marker in text or encoded(marker) in text] == []
    account = lab.kubeconfig.read_text()
    assert not any(len(word) > 40 and word in text for word in account.split())


def encoded(text: str) -> str:
    """As a Secret's data has it."""
    return b64encode(text.encode()).decode()


def test_helm_test_runs_it_in_the_cluster(lab: Site) -> None:
    """As a Job with rights to read only; there it sees the adapter's own metrics too."""
    lab.helm("test", SERVICE, f"--namespace={NAMESPACE}", "--timeout=3m")
    log = lab.kubectl("-n", NAMESPACE, "logs", f"job/{SERVICE}-doctor", check=False).stdout
    runner = next(lab.folder.glob(f"pods/{NAMESPACE}_{SERVICE}-doctor*.log"))
    text = log or runner.read_text()
    assert "0 errors" in text, text
    assert "could not" not in text, text
    fine = {line.split()[1] for line in text.splitlines() if line.startswith(("√ ", "+ "))}
    assert fine >= {"GMA009", "GMA010", "GMA121", "GMA706", "GMA711", "GMA712"}, text
    # The lab's own certificates are valid for a day.
    assert "the certificate front-proxy ends in" in text
    assert "the certificate serving ends in" not in text
    left = lab.kubectl("get", "clusterroles", "--output=name").stdout
    assert f"{SERVICE}-doctor" not in left


@contextlib.contextmanager
def ending(site: Site) -> Iterator[None]:
    """A certificate of the chart's CA ends in five of its 90 days, and nothing renews it yet."""
    keys = site.admin.get(f"{SECRETS}/{SERVICE}-ca")["data"]
    authority = read_authority(b64decode(keys["ca.crt"]), b64decode(keys["ca.key"]))
    names = (f"{SERVICE}.{NAMESPACE}.svc", f"{SERVICE}.{NAMESPACE}.svc.cluster.local")
    issued = authority.issue(names, time.time() - 85 * 86400, 90)
    pair = {"tls.crt": issued.certificate, "tls.key": issued.key}
    short = {"data": {key: b64encode(pem).decode() for key, pem in pair.items()}}
    with patched(site, CRONJOB, {"spec": {"suspend": True}}, {"spec": {"suspend": False}}):
        site.admin.patch(f"{SECRETS}/{SERVICE}-certificate", short)
        wait_until(lambda: served(site) == {issued.certificate}, "every pod serves it", 180)
        yield


def served(site: Site) -> set[bytes]:
    """The certificates that the pods show."""
    pods = site.pods(SERVE)
    assert len(pods) == 2
    return {ssl.get_server_certificate((pod.address, 6443)).encode() for pod in pods}


def test_helm_test_finds_what_only_the_adapters_own_metrics_show(lab: Site) -> None:
    """In the cluster the adapter's own metrics can be read.

    Many lines of a page are rejected, the memory limit is below what is used, an exporter rejects
    one replica, and the certificate ends.
    """
    page = real(WHOLE) + b"DCGM_FI_DEV_GPU_UTIL{oops 1\n" * 2000
    limits = {"limits": {"memory": "16Mi"}, "requests": {"memory": "16Mi"}}
    before = lab.admin.get(RELEASE)["spec"]["template"]["spec"]["containers"]
    small = [before[0] | {"resources": limits}, *before[1:]]
    # A paused Deployment does not replace its pods.
    change = {"spec": {"paused": True, "template": {"spec": {"containers": small}}}}
    back = {"spec": {"paused": False, "template": {"spec": {"containers": before}}}}
    deaf = lab.pods(SERVE)[0]
    with (
        ending(lab),
        third_node(lab),
        stand(lab, exporter(), 9400, page, rejected={deaf.address}),
        patched(lab, RELEASE, change, back),
    ):
        wait_until(lambda: THIRD in str(lab.admin.get(GPUS)), "a replica has scraped the exporter")
        lab.helm("test", SERVICE, f"--namespace={NAMESPACE}", "--timeout=3m", check=False)
        runners = sorted(lab.folder.glob(f"pods/{NAMESPACE}_{SERVICE}-doctor*.log"))
        text = max(runners, key=lambda file: file.stat().st_mtime).read_text()
        old = served(lab)
    warnings = {line.split()[1] for line in text.splitlines() if line.startswith(("‼ ", "! "))}
    assert warnings >= {"GMA711", "GMA712", "GMA713", "GMA714"}, text
    assert f"pod {deaf.name}: sees 16 devices" in " ".join(text.split()), text
    assert "0 errors" in text, text
    # The printed command renews the certificate, each time that it runs.
    (command,) = re.findall(r"\$ (kubectl .* create job .*)", text.replace(" \\\n", " "))
    for _ in range(2):
        job = lab.shell(command).split()[0]
        wait_until(lambda: not served(lab) & old, "the certificate is renewed", 180)
        lab.kubectl("-n", NAMESPACE, "delete", job)
        time.sleep(1)


def test_a_user_without_rights_gets_each_right_by_name(lab: Site) -> None:
    """The checks that need no right go on."""
    pair = lab.plane.user("stranger")
    config = lab.plane.write_kubeconfig("stranger", pair=pair)
    done = doctor("-v", "--kubeconfig", config)
    assert done.returncode == 2
    assert "√ GMA001" in done.stdout
    text = " ".join(done.stdout.split())
    assert "stranger may not list pods in the whole cluster" in text
    assert "kubectl create clusterrole" in text


def test_the_hidden_fault_of_an_exporter_without_a_mount(lab: Site) -> None:
    """Last: from now on the adapter scrapes exporters with a mount only, for ten minutes."""
    pod = exporter("gpu-a", "mounted")
    pod["spec"]["volumes"] = [{"name": "socket", "hostPath": {"path": "/var/lib/kubelet"}}]
    page = own_page(UNATTRIBUTED).encode()
    with stand(lab, pod, 9400, page):
        ids = set(found_by(checked(lab.kubeconfig)))
    assert {"GMA106", "GMA109"} <= ids
