"""Answers of `serve` with default settings."""

from __future__ import annotations

from functools import partial

import httpx
import yaml

from adapter.pipeline.attribution.sharing import Evidence
from tests.adapter.server.serve.conftest import Running
from tests.adapter.serving import PAGE, POD, PODS, eventually, ready, values


def test_an_exporter_page_becomes_the_value_of_a_pod(running: Running) -> None:
    client = running.client
    eventually(lambda: ready(client))
    assert values(client) == ["80"]


BROKEN_PAGES = {
    "empty": b"",
    "HTML": b"<html><body>login</body></html>\n",
    "binary": bytes(range(256)) * 64,
    "no number": b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="p0",namespace="ns"} N/A\n',
    "cut": PAGE.format(value=5).encode()[:-3],
    "sentinel": PAGE.format(value=2147483632).encode(),
    "NaN": PAGE.format(value="NaN").encode(),
    "above its range": PAGE.format(value=808334905).encode(),
}


def left_out(client: httpx.Client) -> float:
    """Everything that `serve` has counted as unusable."""
    lines = client.get("/metrics").text.splitlines()
    counted = ("gma_rejects_total{", "gma_scrape_failures_total{")
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(counted))


def more_left_out(client: httpx.Client, before: float) -> bool:
    return left_out(client) > before


def test_broken_pages_are_counted_and_leave_the_last_good_value(running: Running) -> None:
    client = running.client
    for name, page in BROKEN_PAGES.items():
        running.lab.exporter.page = PAGE.format(value=80).encode()
        eventually(lambda: values(client) == ["80"])
        before = left_out(client)
        running.lab.exporter.page = page
        eventually(partial(more_left_out, client, before))
        assert values(client) == ["80"], name


def test_the_sharing_of_devices_is_on_the_adapters_metrics_page(running: Running) -> None:
    client = running.client

    def given() -> list[str]:
        lines = client.get("/metrics").text.splitlines()
        return [line for line in lines if line.startswith("gma_attributed_devices{")]

    # Devices are counted in the background, 1, 3, 7, … seconds after the start.
    eventually(lambda: 'gma_attributed_devices{attribution="exact"} 1.0' in given())
    assert given() == [
        'gma_attributed_devices{attribution="copied"} 0.0',
        'gma_attributed_devices{attribution="derived"} 0.0',
        'gma_attributed_devices{attribution="exact"} 1.0',
        'gma_attributed_devices{attribution="left_out"} 0.0',
        'gma_attributed_devices{attribution="split"} 0.0',
    ]
    lines = client.get("/metrics").text.splitlines()
    shared = [line for line in lines if line.startswith("gma_sharing_nodes{")]
    assert {line.rpartition("} ")[2] for line in shared} == {"0.0"}
    assert len(shared) == len(Evidence)


def test_pods_follow_the_file(running: Running) -> None:
    client = running.client
    file = running.lab.folder / "pods.yaml"
    since = len(running.serving.log)
    file.write_text(yaml.safe_dump({**POD, "status": {"phase": "Succeeded"}}))
    eventually(lambda: values(client) == [])
    assert client.get(PODS).status_code == 200, "the list is empty, not unknown"
    file.write_text("{ this is not a pod")
    running.serving.wait_for("pods file rejected; the previous objects stay in use", since=since)
    file.write_text(yaml.safe_dump(POD))
    eventually(lambda: values(client) == ["80"])


def test_an_anonymous_client_gets_no_data(running: Running) -> None:
    with running.serving.client(None) as client:
        known, unknown = client.get(PODS), client.get(PODS + "_NOT")
        assert (known.status_code, unknown.status_code) == (403, 403)
        assert known.json()["message"].replace("UTIL", "UTIL_NOT") == unknown.json()["message"]


EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


def test_external_metrics_are_off_by_default(running: Running) -> None:
    client = running.client
    assert client.get(EXTERNAL).status_code == 404
    assert "external.metrics.k8s.io" not in client.get("/apis").text


def test_a_new_audit_id_per_request_does_not_bypass_the_cache(
    running: Running,
) -> None:
    """kube-apiserver sends one with every request that it proxies."""

    def looked_up(result: str) -> float:
        name = f'gma_auth_cache_lookups_total{{cache="user",result="{result}"}} '
        lines = running.client.get("/metrics").text.splitlines()
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    hits, misses = looked_up("hit"), looked_up("miss")
    for number in range(20):
        identity = f"{number:08}-0000-4000-8000-000000000000"
        running.client.get("/apis", headers={"Audit-Id": identity})

    assert looked_up("hit") >= hits + 20
    assert looked_up("miss") == misses == 1
