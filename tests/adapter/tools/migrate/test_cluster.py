"""``migrate prometheus-adapter`` with a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiservice.tls.authority import new_authority
from tests.adapter.clientapi import ApiServer, api_server, forbidden, status_of
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.migrate import peercluster as peer

Lab = tuple[ApiServer, Path]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with api_server(tmp_path) as (server, file):
        peer.furnish(server)
        yield server, file


def migrate(lab: Lab, *arguments: str) -> Ended:
    return invoke("migrate", "prometheus-adapter", "--kubeconfig", str(lab[1]), *arguments)


def report(lab: Lab, *arguments: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(migrate(lab, *arguments, "-o", "json").output)
    return content


def test_a_cluster_is_read_and_nothing_is_written(lab: Lab) -> None:
    ended = migrate(lab)
    assert ended.code == 0
    for text in (
        "prometheus-adapter monitoring/prometheus-adapter",
        "v1beta1.custom.metrics.k8s.io     monitoring/prometheus-adapter   moves",
        "v1beta1.metrics.k8s.io            kube-system/metrics-server      belongs to another",
        "Rules: 2 rules taken over",
        "rules.relist_interval\n",
        "http_requests_per_second   Pods       shop/api, shop/web",
        "queue_depth                External   shop/api",
        "migrate prometheus-adapter -o rules > rules.yaml",
        "kubectl replace -f theirs.yaml",
    ):
        assert text in ended.output
    assert all(line.startswith("GET ") for line in lab[0].asked)


def test_arguments_become_settings(lab: Lab) -> None:
    given = ("--prometheus-header=X-Scope=hunter2", "--metrics-max-age", "10m", "--v=4")
    arguments = [
        *given,
        "--prometheus-ca-file=/etc/ca/ca.crt",
        "--prometheus-verb=GET",
        "--prometheus-thing=1",
    ]
    lab[0].answers[peer.DEPLOYMENTS] = [peer.deployment(*arguments)]
    content = report(lab)
    assert content["values"]["config"] == {
        "rules": {"relist_interval": "1m", "max_age": "10m"},
        "source": {
            "prometheus": {
                "url": "http://prometheus.monitoring.svc:9090",
                "headers": {"X-Scope": "VALUE"},
                "ca_file": "/etc/ca/ca.crt",
                "method": "GET",
            }
        },
    }
    assert {row["argument"] for row in content["arguments"] if row["todo"]} == {
        "--prometheus-header",
        "--prometheus-ca-file",
        "--prometheus-thing",
    }
    assert "hunter2" not in migrate(lab).output


def test_a_password_in_the_url_is_not_printed(lab: Lab) -> None:
    url = "--prometheus-url=https://me:hunter2@prometheus:9090/p?token=hunter2"
    lab[0].answers[peer.DEPLOYMENTS] = [peer.deployment(url)]
    assert "hunter2" not in migrate(lab).output
    assert report(lab)["values"]["config"]["source"]["prometheus"] == {
        "url": "https://prometheus:9090/p"
    }


def test_the_deployment_behind_the_apiservice_is_chosen(lab: Lab) -> None:
    other = peer.deployment()
    other["metadata"] = {"name": "another", "namespace": "apps"}
    other["spec"]["template"]["metadata"] = {"labels": {"app": "another"}}
    lab[0].answers[peer.DEPLOYMENTS] = [other, peer.deployment()]
    content = report(lab)
    assert "monitoring/prometheus-adapter" in content["source"]
    assert any("apps/another is another prometheus-adapter" in text for text in content["remarks"])


def test_external_metrics_of_another_server_are_not_its_own(lab: Lab) -> None:
    lab[0].answers[peer.APISERVICES][1] = peer.apiservice(
        "v1beta1.external.metrics.k8s.io", "keda-operator-metrics-apiserver", "keda"
    )
    assert [row["metric"] for row in report(lab)["metrics"]] == ["http_requests_per_second"]


HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"


def test_keys_of_selectors_that_only_a_rule_serves_are_lost(lab: Lab) -> None:
    rows = []
    for name, keys in (("a", {"Hostname": "n1", "model": "x"}), ("b", {"model": "x"})):
        for metric in ("DCGM_FI_DEV_GPU_UTIL", "http_requests_per_second"):
            row = peer.pods_metric(metric)
            row["pods"]["metric"]["selector"] = {"matchLabels": keys}
            rows.append(peer.hpa(f"{name}-{metric[:4].lower()}", row))
    lab[0].answers[HPAS] = rows
    (lost,) = report(lab)["lostSelectorKeys"]
    assert lost == {
        "metric": "DCGM_FI_DEV_GPU_UTIL",
        "hpa": "shop/a-dcgm",
        "keys": ["Hostname"],
    }
    assert "DCGM_FI_DEV_GPU_UTIL   shop/a-dcgm   Hostname" in migrate(lab).output


RESOURCE = peer.RULES + "resourceRules: {cpu: {containerQuery: a}, memory: {containerQuery: a}}\n"


@pytest.mark.parametrize(
    ("service", "said", "served"),
    [
        (("prometheus-adapter", "monitoring"), "", True),
        (("metrics-server", "kube-system"), "because kube-system/metrics-server serves", False),
        (None, "because the cluster has no APIService of metrics.k8s.io", False),
    ],
    ids=["prometheus-adapter", "metrics-server", "nobody"],
)
def test_resource_metrics_stay_with_their_server(
    service: tuple[str, str] | None, said: str, served: bool, lab: Lab
) -> None:
    lab[0].answers[peer.CONFIGMAP]["data"] = {"config.yaml": RESOURCE}
    lab[0].answers[peer.APISERVICES][2:] = (
        [] if service is None else [peer.apiservice("v1beta1.metrics.k8s.io", *service)]
    )
    content = report(lab)
    assert ("resourceMetrics" in content["values"]) == served
    remarks = [text for text in content["remarks"] if "resourceRules" in text]
    assert len(remarks) == (not served)
    assert said in "".join(remarks)


def test_the_rules_of_a_cluster_are_printed(lab: Lab) -> None:
    ended = migrate(lab, "-o", "rules")
    assert (ended.code, ended.output) == (0, peer.RULES)


def test_an_hpa_that_cannot_be_read_is_named(lab: Lab) -> None:
    lab[0].answers["/apis/autoscaling/v2/horizontalpodautoscalers"].append(
        peer.hpa("odd", {"type": "Other"})
    )
    ended = migrate(lab)
    assert ended.code == 1
    assert "not readable: shop/odd: spec.metrics[0].type is 'Other'" in ended.output


def test_manifests_move_the_apis_and_move_them_back(lab: Lab, tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(new_authority(time.time(), 1).certificate_pem)
    moved = list(yaml.safe_load_all(migrate(lab, "-o", "apiservices", "--ca", str(ca)).output))
    assert [row["metadata"]["name"] for row in moved] == [
        "v1beta1.custom.metrics.k8s.io",
        "v1beta1.external.metrics.k8s.io",
    ]
    for row in moved:
        assert row["spec"]["service"] == {
            "namespace": "gpu-metrics",
            "name": "gpu-metrics-adapter",
            "port": 443,
        }
        assert "insecureSkipTLSVerify" not in row["spec"]
        assert row["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    back = list(yaml.safe_load_all(migrate(lab, "-o", "apiservices-before").output))
    assert back[0] == {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": "v1beta1.custom.metrics.k8s.io",
            "labels": peer.LABELS,
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": peer.apiservice("v1beta1.custom.metrics.k8s.io")["spec"],
    }


def test_a_file_without_a_certificate_is_one_line(lab: Lab) -> None:
    ended = migrate(lab, "-o", "apiservices", "--ca", str(lab[1]))
    assert (ended.code, ended.output.count("\n")) == (2, 1)
    assert "has no PEM certificate" in ended.output


def without(key: str) -> dict[str, Any]:
    row = peer.deployment()
    spec = row["spec"]["template"]["spec"]
    spec["containers"][0].pop(key, None)
    spec.pop(key, None)
    return row


LOST: dict[str, tuple[str, Any, str]] = {
    "no Deployment": (peer.DEPLOYMENTS, [], "has no Deployment of prometheus-adapter"),
    "no arguments": (peer.DEPLOYMENTS, [without("args")], "has no argument --config"),
    "no volume": (peer.DEPLOYMENTS, [without("volumes")], "from no ConfigMap"),
    "no mount": (peer.DEPLOYMENTS, [without("volumeMounts")], "from no ConfigMap"),
    "no key": (peer.CONFIGMAP, {"data": {"a": "b"}}, "has no key config.yaml"),
    "not YAML": (peer.CONFIGMAP, {"data": {"config.yaml": "rules: ["}}, "is not YAML"),
    "no ConfigMap": (peer.CONFIGMAP, (404, status_of(404, "gone", "NotFound")), "404"),
    "no right to Deployments": (
        peer.DEPLOYMENTS,
        forbidden("me", "list", "deployments", "apps", ""),
        "me may not list deployments.apps in the whole cluster; an administrator grants it with",
    ),
    "no right to the ConfigMap": (
        peer.CONFIGMAP,
        forbidden("me", "get", "configmaps", "", "monitoring"),
        "me may not get configmaps in namespace monitoring; an administrator grants it with",
    ),
    "no right to HPAs": (
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        forbidden("me", "list", "horizontalpodautoscalers", "autoscaling", ""),
        "me may not list horizontalpodautoscalers.autoscaling in the whole cluster",
    ),
}


@pytest.mark.parametrize(("path", "answer", "said"), LOST.values(), ids=LOST)
def test_what_cannot_be_read_is_one_line(lab: Lab, path: str, answer: Any, said: str) -> None:
    lab[0].answers[path] = answer
    ended = migrate(lab)
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert said in line
