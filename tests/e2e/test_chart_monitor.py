"""The ServiceMonitors: a real Prometheus reads both components as they say, and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.server.serve.gpuledger import STATES
from adapter.server.serve.selfmetrics import GPU_SECONDS
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import one, render
from tests.e2e.chartvalues import CA, MONITOR, OWN_CERTIFICATE, VALUES
from tests.e2e.cluster import Object
from tests.e2e.nodepoolstage import Controller
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.scrapeconfig import Read, job
from tests.e2e.serverside import apply, ensure
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

READER = {"serviceAccount": {"name": "prometheus", "namespace": "watch"}}
WITH_READER: dict[str, Any] = {
    "serviceMonitor": {"enabled": True, "reader": READER},
    "nodepool": {"enabled": True},
}


def monitors(values: Mapping[str, Any]) -> tuple[Object, Object]:
    objects = render(values)
    first = one(objects, "ServiceMonitor", SERVICE)
    return first, one(objects, "ServiceMonitor", f"{SERVICE}-nodepool")


@pytest.fixture
def controller(stage: Stage) -> Iterator[Controller]:
    """A controller in a dry run."""
    one = Controller(stage.folder, "monitored", stage.plane.kubeconfig, apply=False)
    one.start()
    yield one
    one.stop()


def test_prometheus_reads_both_components(
    stage: Stage, controller: Controller, tmp_path: Path
) -> None:
    """With the token of an account that has the chart's role, the CA and the name as rendered.

    Neither a token without that role nor a CA other than the serving certificate's will do.
    """
    ensure(stage.admin, "watch")
    tokens = {}
    for name in ("prometheus", "stranger"):
        meta = {"name": name, "namespace": "watch"}
        apply(stage.admin, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, "")
        tokens[name] = tmp_path / name
        tokens[name].write_text(stage.admin.token("watch", name))
    for row in render(WITH_READER):
        if row["metadata"]["name"].endswith(":metrics-reader"):
            apply(stage.admin, row, "")
    serve, nodepool = monitors(WITH_READER)
    serve_at, nodepool_at = [f"127.0.0.1:{stage.adapter.port}"], [f"127.0.0.1:{controller.port}"]
    ours, other = always(stage.adapter.ca), always(stage.plane.ca.cert)
    jobs = [
        job("serve", serve, serve_at, tokens["prometheus"], ours),
        job("nodepool", nodepool, nodepool_at, tokens["prometheus"], ours),
        job("without the role", serve, serve_at, tokens["stranger"], ours),
        job("with another CA", serve, serve_at, tokens["prometheus"], other),
    ]
    often = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    prometheus = Prometheus(
        tmp_path, "monitor", {}, honor_labels=False, jobs=[row | often for row in jobs]
    )
    stage.workload("money", replicas=2, demand=120, low=2, high=2)
    prometheus.start()
    try:
        series = (
            f'{GPU_SECONDS.name}{{job="serve",namespace="money",workload="Deployment/inference"}}'
        )
        wait_until(lambda: prometheus.count(f"sum({series}) > 0") == 1, "GPU-seconds", 200)
        assert prometheus.count(series) == len(STATES)
        assert prometheus.count(f'{GPU_SECONDS.name}{{exported_namespace!=""}}') == 0
        for good in ("serve", "nodepool"):
            wait_count(prometheus, f'gma_build_info{{job="{good}"}}')
        for bad in ("without the role", "with another CA"):
            wait_count(prometheus, f'up{{job="{bad}"}} == 0')
            assert prometheus.count(f'{{job="{bad}",__name__=~"gma_.*"}}') == 0
    finally:
        prometheus.stop()


def always(file: Path) -> Read:
    return lambda *_: file


def wait_count(prometheus: Prometheus, query: str) -> None:
    wait_until(lambda: prometheus.count(query) == 1, f"one of {query}")


def test_prometheus_understands_every_value(tmp_path: Path) -> None:
    """promtool finds nothing wrong with what becomes of the ServiceMonitors."""
    file = tmp_path / "file"
    file.write_text(CA)
    rows = [
        job(f"{name} {row['metadata']['name']}", row, ["127.0.0.1:1"], file, always(file))
        for name, values in VALUES.items()
        for row in render(values)
        if row["kind"] == "ServiceMonitor"
    ]
    assert len(rows) > 2
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": rows}))
    promtool = programs.find(programs.PROMTOOL)
    # Without a look into the files, which hold no real certificates.
    done = subprocess.run(
        [promtool, "check", "config", "--syntax-only", config],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_each_monitor_selects_one_service_and_one_port() -> None:
    objects = render(WITH_READER | {"keda": {"headlessService": True}})
    for monitor in (row for row in objects if row["kind"] == "ServiceMonitor"):
        (endpoint,) = monitor["spec"]["endpoints"]
        labels = monitor["spec"]["selector"]["matchLabels"].items()
        selected = [
            row["metadata"]["name"]
            for row in objects
            if row["kind"] == "Service"
            and labels <= row["metadata"]["labels"].items()
            and endpoint["port"] in [port["name"] for port in row["spec"]["ports"]]
        ]
        assert selected == [monitor["metadata"]["name"]]


def test_each_value_of_the_monitors_has_an_effect() -> None:
    serve, nodepool = monitors(MONITOR)
    for monitor in (serve, nodepool):
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("15s", "5s")
        assert endpoint["metricRelabelings"] == [{"action": "labeldrop", "regex": "job"}]
    (endpoint,) = serve["spec"]["endpoints"]
    assert endpoint["authorization"] == {
        "type": "Bearer",
        "credentials": {"name": "reader", "key": "token"},
    }
    assert "bearerTokenFile" not in endpoint
    bound = one(render(MONITOR), "ClusterRoleBinding", f"{SERVICE}:metrics-reader")
    account = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "watch"}
    assert bound["subjects"] == [account]


def test_the_certificate_is_verified() -> None:
    """In no set of values is a certificate left unchecked."""
    for values in VALUES.values():
        assert "insecureSkip" not in json.dumps(render(values))


def test_the_ca_is_that_of_the_certificate_in_use() -> None:
    """A supplied Secret may lack its CA: then it is in a ConfigMap."""
    values = OWN_CERTIFICATE | {"serviceMonitor": {"enabled": True}}
    objects = render(values)
    (endpoint,) = one(objects, "ServiceMonitor")["spec"]["endpoints"]
    where = endpoint["tlsConfig"]["ca"]["configMap"]
    assert one(objects, "ConfigMap", where["name"])["data"][where["key"]] == CA
    assert endpoint["tlsConfig"]["serverName"] == f"{SERVICE}.{NAMESPACE}.svc"
    (usual, _) = monitors(WITH_READER)
    (endpoint,) = usual["spec"]["endpoints"]
    pod = one(render(WITH_READER, only=["deployment"]), "Deployment")["spec"]["template"]["spec"]
    (mounted,) = [row["secret"] for row in pod["volumes"] if row["name"] == "certificate"]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == mounted["secretName"]
