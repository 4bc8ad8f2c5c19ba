"""``kubectl get gpus`` and its relatives: the real kubectl, on the real API server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import programs
from tests.e2e.apiservice import VIEW, ensure_namespace, register_group, wait_available
from tests.e2e.chart import render
from tests.e2e.cluster import Cluster
from tests.e2e.process import wait_until
from tests.e2e.serverside import apply
from tests.e2e.stage import NODES, Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GROUP, VERSION, _ = VIEW[0]
BASE = f"/apis/{GROUP}/{VERSION}"
APISERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.{GROUP}"
HINT = "repeat the list instead"
Done = subprocess.CompletedProcess[str]


class Viewed:
    """A stage whose API server serves the view API, with two pods in each of two namespaces."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.folder = folder

    def run(
        self, *arguments: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as the admin unless a kubeconfig is given."""
        home = {"HOME": str(self.folder), "KUBECACHEDIR": str(self.folder / "cache")}
        shown = kubeconfig or self.stage.plane.kubeconfig
        return subprocess.run(
            [programs.find(programs.KUBECTL), f"--kubeconfig={shown}", *arguments],
            env=os.environ | home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def text(self, *arguments: str) -> str:
        """Return what a command prints that must succeed without a warning."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def rows(self, *arguments: str) -> list[list[str]]:
        """Return the words of each line."""
        return [line.split() for line in self.text(*arguments).splitlines()]

    def names(self, *arguments: str) -> list[str]:
        """Return the first word of each line below the titles."""
        return [row[0] for row in self.rows(*arguments)[1:]]


@pytest.fixture(scope="module")
def running(running_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    """The stage with the view API registered."""
    stage = running_stage
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), VIEW)
    try:
        wait_available(stage.admin, VIEW)
        for row in render(only=["viewroles"]):
            apply(stage.admin, row, "")
        yield Viewed(stage, tmp_path_factory.mktemp("view"))
    finally:
        stage.admin.delete(APISERVICE)
        stage.clear()


@pytest.fixture
def view(running: Viewed) -> Viewed:
    """The view API over two pods in each of the namespaces red and blue, all with values."""
    stage = running.stage
    for namespace in ("red", "blue"):
        if not any(pod.namespace == namespace for pod in stage.pods()):
            stage.workload(namespace, replicas=2, demand=120, low=2, high=2)
            stage.wait_size(namespace, 2)
    wait_until(lambda: len(stage.values("red")) == 2, "red has values")
    wait_until(lambda: len(stage.values("blue")) == 2, "blue has values")
    return running


def test_the_resources_are_listed(view: Viewed) -> None:
    """`api-resources` shows them through the API server's aggregated discovery."""
    wait_until(
        lambda: "gpupods" in view.run("api-resources", f"--api-group={GROUP}").stdout,
        "the resources are discovered",
        90,
    )
    rows = view.rows("api-resources", f"--api-group={GROUP}", "--output=wide")
    resources = {row[0]: row[1:] for row in rows[1:]}
    assert resources["gpus"] == [f"{GROUP}/{VERSION}", "false", "Gpu", "get,list", "gpu-metrics"]
    assert resources["gpupods"] == [
        "gpod",
        f"{GROUP}/{VERSION}",
        "true",
        "GpuPod",
        "get,list",
        "gpu-metrics",
    ]


def test_the_api_server_takes_our_aggregated_discovery(view: Viewed) -> None:
    """A client of aggregated discovery sees the resources, with names that only it has."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def resources(cluster: Cluster) -> dict[str, Any]:
        answer = cluster.client.get("/apis", headers={"Accept": accept})
        assert answer.headers["content-type"].startswith(accept)
        (group,) = [item for item in answer.json()["items"] if item["metadata"]["name"] == GROUP]
        (version,) = group["versions"]
        assert version["freshness"] == "Current"
        return {row["resource"]: row for row in version["resources"]}

    direct = view.stage.adapter.client(view.stage.plane.proxy_client)
    try:
        own = resources(direct)
    finally:
        direct.close()
    wait_until(lambda: resources(view.stage.admin).keys() == own.keys(), "the server has them", 90)
    merged = resources(view.stage.admin)["gpupods"]
    assert merged == own["gpupods"]
    assert merged["responseKind"] == {"group": GROUP, "version": VERSION, "kind": "GpuPod"}


def test_get_prints_a_table(view: Viewed) -> None:
    title, *rows = view.rows("get", "gpus")
    assert title[:3] == ["NAME", "NODE", "GPU"]
    assert {row[1] for row in rows} == set(NODES)
    assert view.rows("get", "gpu")[0] == title, "the singular"
    both = view.text("get", "gpu-metrics", "-n", "red")
    assert "gpuworkload.view.gpu-metrics-adapter.io/deployment.inference" in both
    assert "gpu.view.gpu-metrics-adapter.io/node-a.gpu0" in both, "the category"
    assert "gpupod.view.gpu-metrics-adapter.io/inference-" in both
    assert view.rows("get", "gpod", "-n", "red")[0][0] == "NAME", "the short name"


def test_wide_adds_columns(view: Viewed) -> None:
    narrow, wide = view.rows("get", "gpus")[0], view.rows("get", "gpus", "-o", "wide")[0]
    assert wide[: len(narrow)] == narrow
    assert "UUID" in wide[len(narrow) :]


def test_a_missing_cell_is_not_an_empty_one(view: Viewed) -> None:
    """Each line has a word for every column, so scripts can count them."""
    title, *rows = view.rows("get", "gpupods", "-n", "red", "-o", "wide")
    assert [row for row in rows if len(row) < len(title)] == []


def test_all_namespaces_have_a_column_of_their_own(view: Viewed) -> None:
    title, *rows = view.rows("get", "gpupods", "-A")
    assert title[:2] == ["NAMESPACE", "NAME"]
    assert {"red", "blue"} <= {row[0] for row in rows}
    assert {row[0] for row in rows} == {row[0] for row in sorted(rows)}


def test_one_namespace_shows_no_other(view: Viewed) -> None:
    pods = {pod.name for pod in view.stage.pods() if pod.namespace == "red"}
    assert set(view.names("get", "gpupods", "-n", "red")) == pods


def test_selectors_restrict_the_list(view: Viewed) -> None:
    assert len(view.names("get", "gpupods", "-n", "red", "-l", "app=inference")) == 2
    nothing = view.run("get", "gpupods", "-n", "red", "-l", "app=none")
    assert nothing.stderr == "No resources found in red namespace.\n"
    node = NODES[0]
    gpus = view.rows("get", "gpus", "--field-selector", f"node={node}")[1:]
    assert {row[1] for row in gpus} == {node}
    unknown = view.run("get", "gpus", "--field-selector", "color=red")
    assert unknown.returncode == 1
    assert "field label not supported: color" in unknown.stderr
    assert "node" in unknown.stderr, "the supported ones are named"


def test_a_workload_shows_its_hpa(view: Viewed) -> None:
    """The HPA's status reaches the table through a watch with the chart's right."""

    def look() -> list[list[str]]:
        rows = view.rows("get", "gwl", "-n", "red")
        return rows if "inference" in rows[-1] else []

    title, row = wait_until(look, "the HPA is shown")
    assert row[0] == "deployment.inference"
    shown = dict(zip(title, row, strict=False))
    assert shown["PODS"] == "2"
    assert shown["HPA"] == "inference"
    assert "hpas" in view.text("get", "gwl", "deployment.inference", "-n", "red", "-o", "yaml")


def test_what_the_hpa_was_is_kept(view: Viewed) -> None:
    """A minute after the HPA exists, `serve` has a point of it; the real API server takes nulls."""
    name = "horizontalpodautoscaler.inference"

    def look() -> dict[str, Any]:
        done = view.run("get", "gpuhistory", name, "-n", "red", "-o", "json")
        history: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return history if any(history.get("current") or ()) else {}

    history = wait_until(look, "a point of the HPA", 130)
    assert history["of"] == "HorizontalPodAutoscaler"
    assert history["metric"] == "DCGM_FI_DEV_GPU_UTIL"
    assert len(history["value"]) == len(history["state"])


def test_the_pools_are_listed(view: Viewed) -> None:
    title, *rows = view.rows("get", "gpupools")
    assert "LARGEST" in title
    assert rows


def test_one_object_in_every_format(view: Viewed) -> None:
    name = view.names("get", "gpupods", "-n", "red")[0]
    assert view.names("get", "gpupod", name, "-n", "red") == [name]
    gpu_pod = json.loads(view.text("get", "gpupod", name, "-n", "red", "-o", "json"))
    assert (gpu_pod["kind"], gpu_pod["apiVersion"]) == ("GpuPod", f"{GROUP}/{VERSION}")
    assert gpu_pod["metadata"]["labels"]["app"] == "inference"
    yaml = view.text("get", "gpupod", name, "-n", "red", "-o", "yaml")
    assert "kind: GpuPod" in yaml
    expected = f"gpupod.{GROUP}/{name}\n"
    assert view.text("get", "gpupod", name, "-n", "red", "-o", "name") == expected
    listed = json.loads(view.text("get", "gpupods", "-n", "red", "-o", "json"))
    assert len(listed["items"]) == 2
    value = view.text("get", "gpus", "-o", "jsonpath={.items[*].node}")
    assert set(value.split()) == set(NODES)


def test_a_list_is_sorted_by_a_field_of_the_object(view: Viewed) -> None:
    path = "--sort-by={.metadata.name}"
    names = view.names("get", "gpupods", "-n", "red", path)
    assert names == sorted(names)
    by_node = view.rows("get", "gpus", "--sort-by={.node}")[1:]
    assert [row[1] for row in by_node] == sorted(row[1] for row in by_node)


def test_labels_become_columns(view: Viewed) -> None:
    title, *rows = view.rows("get", "gpupods", "-n", "red", "-L", "app")
    assert title[-1] == "APP"
    assert {row[-1] for row in rows} == {"inference"}
    shown = view.text("get", "gpupods", "-n", "red", "--show-labels")
    assert "app=inference" in shown


def test_chunks_together_are_the_list(view: Viewed) -> None:
    whole = view.names("get", "gpus")
    done = view.run("get", "gpus", "--chunk-size=1", "-v=8")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == whole
    assert done.stderr.count("continue=") >= len(whole) - 1


def test_a_foreign_continue_token_is_refused(view: Viewed) -> None:
    done = view.run("get", "--raw", f"{BASE}/gpus?limit=1&continue=eyJ2IjoibWV0YSJ9")
    assert done.returncode == 1
    assert "continue key is not valid" in done.stderr


def test_watch_prints_the_list_and_what_to_do_instead(view: Viewed) -> None:
    for arguments in (("gpus",), ("gpupods", "-n", "red")):
        done = view.run("get", *arguments, "-w")
        assert done.returncode == 1
        assert done.stdout.startswith("NAME"), "the list comes first"
        assert "Error from server (MethodNotAllowed)" in done.stderr
        assert HINT in done.stderr
        assert f"watch -n 5 kubectl get {arguments[0]}" in done.stderr


def test_describe_prints_the_object(view: Viewed) -> None:
    name = view.names("get", "gpus")[0]
    text = view.text("describe", "gpu", name)
    assert text.split()[:2] == ["Name:", name]
    assert re.search(r"^Kind: +Gpu$", text, re.MULTILINE)
    pod = view.names("get", "gpupods", "-n", "red")[0]
    assert "Namespace:    red" in view.text("describe", "gpod", pod, "-n", "red")


def test_explain_knows_the_fields(view: Viewed) -> None:
    def known() -> bool:
        return view.run("explain", "gpus").returncode == 0

    wait_until(known, "the API server has read our OpenAPI", 120)
    text = view.text("explain", "gpus")
    assert f"GROUP:      {GROUP}" in text
    assert "KIND:       Gpu" in text
    assert "migProfile" in text
    fields = view.text("explain", "gpupods.metrics", "--recursive")
    assert "FIELDS:" in fields
    assert "windowSeconds" in fields
    assert "ObjectMeta" in view.text("explain", "gpupods.metadata")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("get", "gpu", "nothing"), 'gpus.view.gpu-metrics-adapter.io "nothing" not found'),
        (("delete", "gpu", "node-a.gpu0"), "the server does not allow this method"),
        (("label", "gpu", "node-a.gpu0", "a=b"), "the server does not allow this method"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    view: Viewed, arguments: tuple[str, ...], words: str
) -> None:
    done = view.run(*arguments)
    assert words in done.stderr
    assert done.returncode == 1


def test_an_unknown_name_is_answered_with_the_nearest(view: Viewed) -> None:
    name = view.names("get", "gpus")[0]
    done = view.run("get", "gpu", f"{name}x")
    assert done.returncode == 1
    assert f'did you mean "{name}"' in done.stderr


class Tenant:
    """A user who has the role view in the namespace red."""

    def __init__(self, view: Viewed) -> None:
        self.view = view
        ensure_namespace(view.stage.admin, "red")
        pair = view.stage.plane.user("tenant")
        self.kubeconfig = view.stage.plane.write_kubeconfig("tenant", pair=pair)

    def run(self, *arguments: str) -> Done:
        return self.view.run(*arguments, kubeconfig=self.kubeconfig)


@pytest.fixture
def tenant(view: Viewed) -> Iterator[Tenant]:
    """A user with the chart's role in the namespace red, and no other right."""
    role = f"{render(only=['viewroles'])[0]['metadata']['name']}"
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "tenant", "namespace": "red"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    view.stage.admin.create(binding)
    made = Tenant(view)
    wait_until(
        lambda: made.run("auth", "can-i", "list", f"gpupods.{GROUP}", "-n", "red").returncode == 0,
        "the role is bound",
    )
    yield made
    view.stage.admin.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings/tenant")


def test_a_user_of_one_namespace_sees_its_pods_only(tenant: Tenant) -> None:
    def can(*what: str) -> str:
        return tenant.run("auth", "can-i", *what).stdout.strip()

    assert can("list", f"gpupods.{GROUP}", "-n", "red") == "yes"
    assert can("get", f"gpupods.{GROUP}", "-n", "red") == "yes"
    assert can("list", f"gpupods.{GROUP}", "-n", "blue") == "no"
    assert can("list", f"gpupods.{GROUP}", "-A") == "no"
    assert can("list", f"gpus.{GROUP}") == "no"
    done = tenant.run("get", "gpupods", "-n", "red")
    assert done.returncode == 0, done.stderr
    assert "inference" in done.stdout
    for arguments, where in (
        (("gpupods", "-n", "blue"), 'in the namespace "blue"'),
        (("gpupods", "-A"), "at the cluster scope"),
        (("gpus",), "at the cluster scope"),
        (("gpupools",), "at the cluster scope"),
        (("gpuhistories", "-n", "blue"), 'in the namespace "blue"'),
        (("gpuhistoryhours",), "at the cluster scope"),
    ):
        done = tenant.run("get", *arguments)
        assert done.returncode == 1
        assert "Error from server (Forbidden)" in done.stderr
        assert where in done.stderr
        assert done.stdout == ""


def test_the_watch_of_a_user_of_one_namespace_is_answered_alike(tenant: Tenant) -> None:
    """The role includes watch, so the answer is what to do instead, not a missing right."""
    done = tenant.run("get", "gpupods", "-n", "red", "-w")
    assert HINT in done.stderr


def test_the_role_view_includes_the_resources_of_namespaces(view: Viewed) -> None:
    """The controller of aggregated roles has copied the chart's rules."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"

    def rules() -> str:
        return json.dumps(view.stage.admin.get(path)["rules"])

    wait_until(lambda: GROUP in rules(), "the rules are copied")
    assert "gpupods" in rules()
    assert '"gpus"' not in rules()


def test_a_namespace_can_be_deleted_beside_the_view_api(view: Viewed) -> None:
    """The namespace controller finds nothing to delete in it."""
    ensure_namespace(view.stage.admin, "green")
    view.stage.admin.delete("/api/v1/namespaces/green")

    def gone() -> bool:
        rows = view.stage.admin.get("/api/v1/namespaces")["items"]
        return "green" not in {row["metadata"]["name"] for row in rows}

    wait_until(gone, "the namespace is gone", 60)


def _tool(view: Viewed, *arguments: str, **environ: str) -> Done:
    return subprocess.run(
        [Path(sys.executable).with_name("gpu-metrics-adapter"), *arguments],
        env=os.environ | {"KUBECONFIG": str(view.stage.plane.kubeconfig)} | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _explain(view: Viewed, *arguments: str, kubeconfig: Path | None = None) -> Done:
    shown = kubeconfig or view.stage.plane.kubeconfig
    return _tool(view, "explain", *arguments, f"--kubeconfig={shown}")


def test_explain_reads_the_real_objects(view: Viewed) -> None:
    """Values, devices and attribution of an HPA, a pod and a node."""
    pod = view.names("get", "gpupods", "-n", "red")[0]
    node = view.stage.admin.get(f"/api/v1/namespaces/red/pods/{pod}")["spec"]["nodeName"]
    hpa = _explain(view, "hpa", "inference", "-n", "red")
    assert hpa.returncode == 1, hpa.stderr
    assert "minReplicas equals maxReplicas (2)" in hpa.stdout
    assert pod in hpa.stdout
    one = _explain(view, "pod", pod, "-n", "red")
    assert (one.returncode, one.stderr) == (0, "")
    assert "gpu_utilization" in one.stdout
    assert f"{node}.gpu" in one.stdout
    whole = _explain(view, "node", node)
    # No controller takes the taint of a new node away here.
    assert (whole.returncode, whole.stderr) == (1, ""), whole.stdout
    assert "has the taint node.kubernetes.io/not-ready:NoSchedule" in whole.stdout
    assert f"red/{pod}" in whole.stdout


def test_explain_with_the_role_view_names_the_right_for_the_values(view: Viewed) -> None:
    """It follows the HPA's status, shows the pods, and exits with 2."""
    account = {"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    meta = {"metadata": {"name": "reader", "namespace": "red"}}
    apply(view.stage.admin, binding | meta | {"subjects": [account], "roleRef": role}, "")
    plane = view.stage.plane
    kubeconfig = plane.write_kubeconfig("reader", pair=plane.user("reader"))
    done = _explain(view, "hpa", "inference", "-n", "red", kubeconfig=kubeconfig)
    assert done.returncode == 2, done.stderr
    assert "by its status" in done.stdout
    assert "not readable: reader may not get pods/DCGM_FI_DEV_GPU_UTIL.custom" in done.stdout
    refused = _explain(view, "hpa", "inference", "-n", "blue", kubeconfig=kubeconfig)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "reader may not get horizontalpodautoscalers.autoscaling in namespace blue" in line


def test_objects_are_named_as_kubectl_names_them(view: Viewed) -> None:
    """TYPE/NAME, a workload by its HPA, and a GPU by its name or UUID."""
    hpa = _tool(view, "-n", "red", "explain", "hpa/inference", "-o", "json")
    workload = _tool(view, "-n", "red", "explain", "deploy/inference", "-o", "yaml")
    assert (hpa.returncode, workload.returncode) == (1, 1), hpa.stderr + workload.stderr
    explanation = yaml.safe_load(workload.stdout)
    assert explanation["hpas"][0]["name"] == json.loads(hpa.stdout)["name"] == "inference"
    assert (explanation["gpuworkload"]["pods"], explanation["gpuworkload"]["measured"]) == (2, 2)
    gpu = view.names("get", "gpus")[0]
    uuid = json.loads(view.text("get", "gpu", gpu, "-o", "json"))["uuid"]
    by_name, by_uuid = (_explain(view, f"gpu/{name}") for name in (gpu, uuid))
    assert by_name.stdout.startswith(f"gpu {gpu}   "), by_name.stderr
    assert by_uuid.stdout.splitlines()[:2] == by_name.stdout.splitlines()[:2], by_uuid.stderr


def test_as_another_user_the_api_server_checks_that_users_rights(view: Viewed) -> None:
    jane = _tool(view, "--as", "jane", "explain", "hpa/inference", "-n", "red")
    assert jane.returncode == 2
    assert "jane may not get horizontalpodautoscalers.autoscaling in namespace red" in jane.stderr
    group = ("--as-group", "nobodies", "--as-group", "system:masters")
    admin = _tool(view, "--as", "jane", *group, "explain", "hpa/inference", "-n", "red")
    assert admin.returncode == 1, admin.stderr
    assert "minReplicas equals maxReplicas (2)" in admin.stdout


def test_top_counts_each_gpu_of_a_node_once(view: Viewed) -> None:
    done = _tool(view, "top", "nodes", "-o", "json")
    rows = json.loads(done.stdout)["rows"]
    assert {row["name"] for row in rows} >= {"node-a"}, done.stderr
    for row in rows:
        parts = [int(row[name]) for name in ("busy", "idle", "free", "blocked", "noPod", "noValue")]
        assert sum(parts) == int(row["gpus"])
    assert sum(int(row["busy"]) + int(row["idle"]) for row in rows) >= 4


def test_a_shell_completes_names_of_the_cluster(view: Viewed) -> None:
    def completed(*words: str) -> list[str]:
        line = {
            "COMP_WORDS": " ".join(("gpu-metrics-adapter", *words)),
            "COMP_CWORD": str(len(words)),
        }
        done = _tool(view, _GPU_METRICS_ADAPTER_COMPLETE="bash_complete", **line)
        assert done.stderr == ""
        return [row.partition(",")[2] for row in done.stdout.splitlines()]

    assert completed("-n", "red", "explain", "hpa/inf") == ["hpa/inference"]
    assert completed("explain", "workload", "-n", "red", "dep") == ["deployment.inference"]
    assert completed("explain", "pod", "-n", "red", "inf") == view.names("get", "pods", "-n", "red")
    assert set(completed("top", "-n", "re")) >= {"red"}
