"""Authentication and authorization of requests, and the view of kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.certificates import Authority, KeyPair
from tests.e2e.cluster import Cluster, Object, RefusedError
from tests.e2e.process import wait_until
from tests.e2e.stage import METRIC, Stage
from tests.e2e.traffic import Traffic, controller
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GROUP = "custom.metrics.k8s.io"
VALUES = f"/apis/{GROUP}/v1beta2/namespaces/{{ns}}/pods/%2A/{{metric}}"


def kubectl(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kubectl as the admin; its caches are the stage's own."""
    home = {"HOME": str(stage.folder), "KUBECACHEDIR": str(stage.folder / "kubectl")}
    return subprocess.run(
        [programs.find(programs.KUBECTL), f"--kubeconfig={stage.plane.kubeconfig}", *arguments],
        env=os.environ | home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_kubectl_get_raw(stage: Stage, version: str) -> None:
    """Both versions answer through the API server, with their own shape of an item."""
    namespace = f"raw-{version}"
    stage.workload(namespace, replicas=2, demand=120, low=2)
    stage.wait_size(namespace, 2)
    # A pod that started first was busier for a moment, and the window remembers it.
    wait_until(lambda: list(stage.values(namespace).values()) == ["60"] * 2, "both pods at 60")
    path = f"/apis/{GROUP}/{version}/namespaces/{namespace}/pods/*/{METRIC}"
    done = kubectl(stage, "get", "--raw", path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["kind"], answer["apiVersion"]) == ("MetricValueList", f"{GROUP}/{version}")
    names = {pod.name for pod in stage.pods() if pod.namespace == namespace}
    assert {item["describedObject"]["name"] for item in answer["items"]} == names
    for item in answer["items"]:
        assert ("metricName" in item) == (version == "v1beta1")
        assert item["value"] == "60"


def test_kubectl_discovers_the_group(stage: Stage) -> None:
    """`api-versions` and `api-resources` list both versions and complain about nothing."""
    # Available comes first: the aggregator reads a group's discovery in its own time.
    ours = {f"{GROUP}/v1beta1", f"{GROUP}/v1beta2"}
    wait_until(
        lambda: ours <= set(kubectl(stage, "api-versions").stdout.split()),
        "api-versions lists both versions",
    )
    resources = kubectl(stage, "api-resources")
    assert (resources.returncode, resources.stderr) == (0, "")
    group = json.loads(kubectl(stage, "get", "--raw", f"/apis/{GROUP}").stdout)
    assert group["preferredVersion"]["version"] == "v1beta1"
    listed = json.loads(kubectl(stage, "get", "--raw", f"/apis/{GROUP}/v1beta2").stdout)
    rows = {row["name"]: row for row in listed["resources"]}
    assert rows[f"pods/{METRIC}"]["namespaced"] is True
    assert rows["pods/gpu_utilization"]["verbs"] == ["get"]


def test_kubectl_get_everything(stage: Stage) -> None:
    """A metrics API in discovery does not break listing what can be listed."""
    done = kubectl(stage, "get", "all", "--namespace", "gpu-operator")
    assert done.returncode == 0, done.stderr
    assert "dcgm-exporter-node-a" in done.stdout


def test_the_openapi_documents_are_accepted(stage: Stage) -> None:
    """The API server aggregates our OpenAPI: its v3 root names our group-versions."""
    wait_until(
        lambda: f"apis/{GROUP}/v1beta2" in stage.admin.get("/openapi/v3")["paths"],
        "the OpenAPI root names the group",
        90,
    )
    document = stage.admin.get(f"/openapi/v3/apis/{GROUP}/v1beta2")
    assert str(document["openapi"]).startswith("3.0")


@pytest.mark.parametrize("metric", [METRIC, "no_such_metric"])
@pytest.mark.parametrize("namespace", ["gpu-operator", "no-such-namespace"])
def test_an_anonymous_client_gets_no_data(stage: Stage, metric: str, namespace: str) -> None:
    """What exists and what does not is refused in the same words, by us and in front of us."""
    path = VALUES.format(ns=namespace, metric=metric)
    words = (
        f'pods.{GROUP} "*" is forbidden: User "stranger" cannot get resource '
        f'"pods/{metric}" in API group "{GROUP}" in the namespace "{namespace}"'
    )
    through = stage.plane.client("stranger")
    direct = stage.adapter.client(stage.plane.proxy_client, "stranger", "strangers")
    for client in (through, direct):
        with pytest.raises(RefusedError) as refused:
            client.get(path)
        status = json.loads(refused.value.text)
        assert (status["code"], status["reason"]) == (403, "Forbidden")
        assert status["message"].startswith(words)
        client.close()


def test_users_from_the_api_server_are_cached(stage: Stage) -> None:
    """The API server sends a new Audit-ID with each request; it is not part of the user."""
    direct = stage.adapter.client(stage.plane.proxy_client)
    path = VALUES.format(ns="gpu-operator", metric=METRIC)
    stage.admin.get(path)
    hits, misses = (_lookups(direct, result) for result in ("hit", "miss"))
    for _ in range(50):
        stage.admin.get(path)
    assert _lookups(direct, "hit") - hits >= 50
    assert _lookups(direct, "miss") - misses < 10
    direct.close()


def _lookups(client: Cluster, result: str) -> float:
    name = f'gma_auth_cache_lookups_total{{cache="user",result="{result}"}} '
    lines = client.get("/metrics").splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_a_user_of_one_namespace(stage: Stage) -> None:
    """A Role on one metric of one namespace opens that and nothing more."""
    stage.workload("tenant", replicas=1, demand=60)
    stage.wait_size("tenant", 1)
    wait_until(lambda: stage.values("tenant"), "the pod has a value")
    _grant(stage.admin, "tenant", "tenant-user", f"pods/{METRIC}")
    for client in (
        stage.plane.client("tenant-user"),
        stage.adapter.client(stage.plane.proxy_client, "tenant-user", "tenants"),
    ):
        assert len(client.get(VALUES.format(ns="tenant", metric=METRIC))["items"]) == 1
        assert _status(client, VALUES.format(ns="tenant", metric="gpu_utilization")) == 403
        assert _status(client, VALUES.format(ns="gpu-operator", metric=METRIC)) == 403
        assert _status(client, VALUES.format(ns="%2A", metric=METRIC)) == 403
        client.close()


def test_direct_requests_to_the_adapter(stage: Stage) -> None:
    """Tokens and the cluster's own certificates are known; nobody else is anybody."""
    url, ca = f"https://localhost:{stage.adapter.port}", str(stage.adapter.ca)
    path = f"/apis/{GROUP}/v1beta2"
    token = stage.admin.token(NAMESPACE, SERVICE)
    spoof = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    for client, code in (
        (Cluster(url, ca, pair=stage.plane.admin_pair), 200),
        (Cluster(url, ca, token=token), 200),
        (Cluster(url, ca, token="nonsense"), 401),
        # A token that was given to another service, which must not be able to use it here.
        (Cluster(url, ca, token=stage.admin.token(NAMESPACE, SERVICE, "vault")), 401),
        (Cluster(url, ca), 403),
        # The headers count only beside the front proxy's certificate.
        (Cluster(url, ca, headers=spoof), 403),
        (Cluster(url, ca, pair=stage.plane.user("stranger"), headers=spoof), 200),
    ):
        # Discovery is open to everybody who is authenticated.
        assert _status(client, path) == code
        client.close()
    direct = Cluster(url, ca, pair=stage.plane.user("stranger"), headers=spoof)
    assert _status(direct, VALUES.format(ns="gpu-operator", metric=METRIC)) == 403
    direct.close()


def test_the_adapters_account_has_only_the_rights_it_needs(stage: Stage) -> None:
    """The chart gives it list and watch on four resources, two reviews and one ConfigMap."""
    granted: set[tuple[str, str]] = set()
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
        for resource in _EVERYTHING:
            if _allowed(stage, verb, resource):
                granted.add((verb, resource))
    assert granted == {
        *((verb, resource) for verb in ("list", "watch") for resource in _WATCHED),
        ("create", "authentication.k8s.io/tokenreviews"),
        ("create", "authorization.k8s.io/subjectaccessreviews"),
        # Every authenticated account may ask what it may itself do.
        ("create", "authorization.k8s.io/selfsubjectaccessreviews"),
    }
    log = stage.adapter.process.log.read_text()
    assert "forbidden" not in log


_WATCHED = ("/pods", "/services", "/nodes", "autoscaling/horizontalpodautoscalers")
_EVERYTHING = (
    *_WATCHED,
    "/pods/status",
    "/pods/exec",
    "/secrets",
    "/configmaps",
    "/namespaces",
    "/events",
    "/serviceaccounts",
    "apps/deployments",
    "apps/replicasets",
    "coordination.k8s.io/leases",
    "rbac.authorization.k8s.io/clusterroles",
    "apiregistration.k8s.io/apiservices",
    f"{GROUP}/pods",
    "authentication.k8s.io/tokenreviews",
    "authorization.k8s.io/subjectaccessreviews",
    "authorization.k8s.io/selfsubjectaccessreviews",
)


def test_the_front_proxy_ca_rotates(stage: Stage, tmp_path: Path) -> None:
    """A new CA is trusted beside the old one, then instead of it: nothing restarts, and while
    both are trusted no request fails."""
    plane = stage.plane
    old, files = plane.proxy_client, plane.front_proxy.cert
    second = Authority(tmp_path, "front-proxy-ca-2")
    new = second.issue("front-proxy-client")
    path = VALUES.format(ns="gpu-operator", metric=METRIC)
    config = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    assert not _reaches(stage, new, path)
    retired = KeyPair(tmp_path / "old.crt", tmp_path / "old.key")
    retired.cert.write_bytes(old.cert.read_bytes())
    retired.key.write_bytes(old.key.read_bytes())

    with Traffic({"hpa": controller(plane, "gpu-operator", Truth(60))}) as traffic:
        traffic.wait_more()
        files.write_bytes(files.read_bytes() + second.pem)
        wait_until(lambda: _reaches(stage, new, path), "the new CA is trusted", 120)
        assert _reaches(stage, old, path)
        # The API server changes over to the new certificate.
        old.key.write_bytes(new.key.read_bytes())
        old.cert.write_bytes(new.cert.read_bytes())
        # No event shows when it has.
        traffic.wait_more(15)
    assert not traffic.failed()
    files.write_bytes(second.pem)

    def old_is_refused() -> bool:
        # The API server only ever adds to its ConfigMap: taking out is the operator's part.
        data = {"requestheader-client-ca-file": second.pem.decode()}
        stage.admin.patch(config, {"data": data})
        return not _reaches(stage, retired, path)

    wait_until(old_is_refused, "the old CA is trusted no more", 120, every=1.0)
    assert _reaches(stage, new, path)
    wait_until(
        lambda: (
            _status(stage.admin, f"/apis/{GROUP}/v1beta2") == 200
            and _status(stage.admin, path) in (200, 404)
        ),
        "the API server reaches the adapter with its new certificate",
        120,
    )


def test_no_connection_of_the_api_server_stays_anonymous_after_a_restart(stage: Stage) -> None:
    """Requests arrive from the first moment, before the adapter knows the API server's CA."""
    path = VALUES.format(ns="gpu-operator", metric=METRIC)
    ended = threading.Event()

    def request_on() -> None:
        while not ended.is_set():
            _status(stage.admin, path)

    askers = [threading.Thread(target=request_on) for _ in range(8)]
    stage.adapter.stop()
    for asker in askers:
        asker.start()
    try:
        stage.adapter.start()
        wait_until(lambda: _status(stage.admin, path) in (200, 404), "the adapter answers")
        statuses = {_status(stage.admin, path) for _ in range(200)}
    finally:
        ended.set()
        for asker in askers:
            asker.join()
    assert statuses <= {200, 404}


def _reaches(stage: Stage, pair: KeyPair, path: str) -> bool:
    """Whether the headers beside this certificate are believed."""
    client = stage.adapter.client(pair)
    try:
        return _status(client, path) in (200, 404)
    except httpx.TransportError:
        # A certificate of an unknown CA ends the handshake.
        return False
    finally:
        client.close()


def _grant(admin: Cluster, namespace: str, user: str, resource: str) -> None:
    api = "rbac.authorization.k8s.io"
    meta = {"name": user, "namespace": namespace}
    rule = {"apiGroups": [GROUP], "resources": [resource], "verbs": ["get"]}
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": [rule]}
    admin.create(role)
    admin.create(
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
        }
    )


def _status(client: Cluster, path: str) -> int:
    return client.client.get(path).status_code


def _allowed(stage: Stage, verb: str, resource: str) -> bool:
    group, _, rest = resource.partition("/")
    name, _, sub = rest.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": sub}
    review: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{SERVICE}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    answer = stage.admin.request(
        "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review
    )
    return bool(answer["status"]["allowed"])
