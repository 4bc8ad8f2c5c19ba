"""`serve` as a user runs it: a process, its exit codes, its messages, its answers."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
import yaml

from adapter.attribution.sharing import Evidence
from tests.adapter.commandline import invoke
from tests.adapter.serving import PAGE, POD, Exporter, Lab, run
from tests.apiservice.pki import on_another_curve

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/%2A/DCGM_FI_DEV_GPU_UTIL"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    exporter = Exporter()
    yield Lab(tmp_path, exporter)
    exporter.close()


def no_pods(folder: Path) -> str:
    """A pods file without any pod."""
    file = folder / "no-pods.yaml"
    file.write_text("[]")
    return str(file)


def eventually(probe: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until the probe holds; other processes decide when."""
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, f"never: {probe}"
        time.sleep(0.05)


def values(client: httpx.Client) -> list[str]:
    """The values served; none before the pods have been listed."""
    answer = client.get(PODS)
    if answer.status_code == 503:
        return []
    return [item["value"] for item in answer.raise_for_status().json()["items"]]


def ready(client: httpx.Client) -> bool:
    return client.get("/readyz").status_code == 200


def test_an_exporters_page_becomes_a_pods_value(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        assert values(client) == ["80"]


def test_a_failing_exporter_is_an_absent_value_and_never_zero(lab: Lab) -> None:
    lab.config["values"] = {"age_limit": "1s"}
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        lab.exporter.status = 500
        seen = set()

        def gone() -> bool:
            found = values(client)
            seen.update(found)
            return found == []

        eventually(gone)
        assert seen <= {"80"}
        assert ready(client), "readiness is about us, not about exporters"
        lab.exporter.status = 200
        eventually(lambda: values(client) == ["80"])


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


def test_broken_pages_are_counted_and_leave_the_last_good_value(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        for name, page in BROKEN_PAGES.items():
            lab.exporter.page = PAGE.format(value=80).encode()
            eventually(lambda: values(client) == ["80"])
            before = left_out(client)
            lab.exporter.page = page
            eventually(lambda before=before: left_out(client) > before)  # type: ignore[misc]
            assert values(client) == ["80"], name


def test_how_devices_are_given_to_pods_stands_on_the_adapters_own_page(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])

        def given() -> list[str]:
            lines = client.get("/metrics").text.splitlines()
            return [line for line in lines if line.startswith("gma_attributed_devices{")]

        # Devices are counted in the background, 1, 3, 7, … seconds after the start.
        eventually(lambda: 'gma_attributed_devices{attribution="exact"} 1.0' in given())
        assert given() == [
            'gma_attributed_devices{attribution="copied"} 0.0',
            'gma_attributed_devices{attribution="exact"} 1.0',
            'gma_attributed_devices{attribution="left_out"} 0.0',
            'gma_attributed_devices{attribution="split"} 0.0',
        ]
        lines = client.get("/metrics").text.splitlines()
        shared = [line for line in lines if line.startswith("gma_sharing_nodes{")]
        assert {line.rpartition("} ")[2] for line in shared} == {"0.0"}
        assert len(shared) == len(Evidence)


def test_pods_come_and_go_with_the_file(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        file = lab.folder / "pods.yaml"
        file.write_text(yaml.safe_dump({**POD, "status": {"phase": "Succeeded"}}))
        eventually(lambda: values(client) == [])
        file.write_text("{ this is no pod")
        serving.wait_for("pods file rejected; the previous objects stay")
        file.write_text(yaml.safe_dump(POD))
        eventually(lambda: values(client) == ["80"])


def test_readiness_ends_when_nothing_is_heard_of_the_pods_for_too_long(lab: Lab) -> None:
    lab.config["cluster"]["stale_after"] = "1s"
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        file = lab.folder / "pods.yaml"
        away = file.rename(lab.folder / "away.yaml")
        eventually(lambda: not ready(client))
        assert "[-]pods failed" in client.get("/readyz?verbose").text
        away.rename(file)
        eventually(lambda: ready(client))


def test_settings_change_without_a_moment_without_values(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        lab.config["values"] = {"window": "10s"}
        lab.write()

        def window() -> int:
            (item,) = client.get(PODS).raise_for_status().json()["items"]
            return int(item["windowSeconds"])

        eventually(lambda: window() == 10)
        lab.config["values"] = {"window": "soon"}
        lab.write()
        entry = serving.wait_for("settings rejected; the previous settings stay active")
        assert "values.window: 'soon' is not a duration" in entry["problems"][0]
        assert window() == 10


def test_a_metric_added_to_the_file_is_served_and_discovered_without_a_restart(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        row = {"name": "half_busy", "series": "DCGM_FI_DEV_GPU_UTIL", "scale": 0.5}
        lab.config["metrics"] = [row]
        lab.write()
        group = PODS.partition("/namespaces/")[0]
        eventually(lambda: '"pods/half_busy"' in client.get(group).text)
        (item,) = client.get(PODS.replace("DCGM_FI_DEV_GPU_UTIL", "half_busy")).json()["items"]
        assert item["value"] == "40"
        lab.config["metrics"] = [{**row, "name": "gpu_utilization"}]
        lab.write()
        entry = serving.wait_for("settings rejected; the previous settings stay active")
        assert "metrics.0.name: is a name of the catalogue: choose another" in entry["problems"][0]


def test_a_changed_section_that_needs_a_restart_is_named(lab: Lab) -> None:
    with lab.serving() as serving:
        lab.config["server"]["drain"] = 1
        lab.write()
        assert serving.wait_for("settings reloaded")["needs_restart"] == ["server"]


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_fails_readiness_first_then_drains_and_ends_with_0(
    lab: Lab, sign: signal.Signals
) -> None:
    lab.config["server"]["drain"] = 2
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        serving.process.send_signal(sign)
        eventually(lambda: not ready(client))
        assert values(client) == ["80"]
        assert serving.process.wait(20) == 0


def test_who_is_nobody_learns_nothing(lab: Lab) -> None:
    with lab.serving() as serving, serving.client(None) as client:
        known, unknown = client.get(PODS), client.get(PODS + "_NOT")
        assert (known.status_code, unknown.status_code) == (403, 403)
        assert known.json()["message"].replace("UTIL", "UTIL_NOT") == unknown.json()["message"]


def test_a_wrong_configuration_exits_2_and_names_key_and_mend(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("source: {kind: graphite}")
    ended = run("serve", "--config", str(file))
    assert ended.returncode == 2
    assert ended.stderr == (
        f"gpu-metrics-adapter: {file}: source.kind: Input should be 'scrape', "
        "'prometheus' or 'azure_logs' (got 'graphite')\n"
    )


EXTRAS = {
    "azure": (
        "azure.identity",
        "prometheus: {url: 'https://e', auth: {kind: azure}}",
        "source.prometheus: auth.kind azure: needs the Python package azure",
    ),
    "google": (
        "google.auth",
        "prometheus: {url: 'https://e', auth: {kind: google}}",
        "source.prometheus: auth.kind google: needs the Python package google",
    ),
    "aws": (
        "botocore.auth",
        "prometheus: {url: 'https://e', auth: {kind: aws, aws: {region: eu-west-1}}}",
        "source.prometheus: auth.kind aws: needs the Python package botocore",
    ),
    "azure, for its logs": (
        "azure.identity",
        "azure_logs: {workspace_id: w-1}",
        "source.azure_logs: needs the Python package azure",
    ),
}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_that_is_not_installed_exits_2_with_key_and_mend(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, source, said = EXTRAS[name]
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / "config.yaml"
    kind = source.partition(":")[0]
    file.write_text(
        f"{{source: {{kind: {kind}, {source}}}, cluster: {{pods_file: {no_pods(tmp_path)}}}, "
        f"server: {{cert_dir: {tmp_path}}}}}"
    )
    ended = invoke("serve", "--config", str(file))
    assert ended.code == 2
    assert said in ended.output
    assert f"pip install 'gpu-metrics-adapter[{name.partition(',')[0]}]'" in ended.output


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"metrics": [{"name": "a", "query": "up"}]}, "metrics.0.query: needs source.kind"),
        (
            {
                "source": {
                    "kind": "prometheus",
                    "prometheus": {"url": "https://e", "ca_file": "/no/ca.crt"},
                }
            },
            "source.prometheus: CA file /no/ca.crt",
        ),
    ],
    ids=["a row of the user's own", "a CA that is not there"],
)
def test_settings_that_nothing_can_be_built_from_exit_2(
    config: dict[str, Any], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    more = {"cluster": {"pods_file": no_pods(tmp_path)}, "server": {"cert_dir": str(tmp_path)}}
    file.write_text(yaml.safe_dump(config | more))
    ended = invoke("serve", "--config", str(file))
    assert ended.code == 2
    assert said in ended.output


def test_a_missing_secret_file_exits_2_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    config = {
        "cluster": {"pods_file": no_pods(tmp_path)},
        "server": {"cert_dir": str(tmp_path)},
        "source": {"scrape": {"bearer_token_file": "/no/token"}},
    }
    file.write_text(yaml.safe_dump(config))
    ended = invoke("serve", "--config", str(file))
    assert ended.code == 2
    assert (
        "source.scrape: bearer_token_file: /no/token cannot be read (No such file" in ended.output
    )


def test_a_secret_file_that_a_reload_cannot_read_keeps_the_values(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        lab.config["source"]["scrape"]["bearer_token_file"] = "/no/token"
        lab.write()
        entry = serving.wait_for("settings rejected; the previous settings stay active")
        assert "bearer_token_file: /no/token cannot be read" in entry["problems"][0]
        assert values(client) == ["80"]


def test_without_an_exporter_it_is_ready_after_the_age_limit_and_not_before(lab: Lab) -> None:
    lab.config["source"]["scrape"]["targets"] = []
    lab.config["values"] = {"age_limit": "2s"}
    with lab.serving() as serving, serving.client() as client:
        started = time.monotonic()
        said = client.get("/readyz?verbose").text
        eventually(lambda: ready(client))
        waited = time.monotonic() - started
    assert "[-]source failed" in said
    assert waited > 1


def test_check_says_whether_settings_are_valid() -> None:
    assert invoke("serve", "--check") == (0, "settings are valid\n")


REFUSALS = {
    "pods file that is not there": (
        {"cluster": {"pods_file": "/no/such/pods.yaml"}, "server": {"cert_dir": "{folder}"}},
        "/no/such/pods.yaml: No such file or directory; correct cluster.pods_file (--pods-file)",
    ),
    "pods file that is empty": (
        {"cluster": {"pods_file": "/dev/null"}, "server": {"cert_dir": "{folder}"}},
        "/dev/null is empty; write manifests, or [] for no objects",
    ),
    "no cluster": ({}, "there is no kubeconfig"),
    "kubeconfig that is not there": (
        {"cluster": {"kubeconfig": "/no/such/kubeconfig"}},
        "kubeconfig /no/such/kubeconfig is not there: name one that is",
    ),
    "certificate that is not there": (
        {
            "cluster": {"pods_file": "{folder}/no-pods.yaml"},
            "server": {"cert_file": "/no/tls.crt", "key_file": "/no/tls.key"},
        },
        "/no/tls.crt: No such file or directory; name a file",
    ),
    "CA that is none": (
        {
            "cluster": {"pods_file": "{folder}/no-pods.yaml"},
            "server": {"cert_dir": "{folder}"},
            "authentication": {"requestheader_ca_file": "/dev/null"},
        },
        "request-header CA file /dev/null: ",
    ),
    "folder that cannot be made": (
        {"cluster": {"pods_file": "{folder}/no-pods.yaml"}, "server": {"cert_dir": "/dev/null/x"}},
        "a self-signed certificate cannot be kept in /dev/null/x: ",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_start_exits_1_and_says_why(name: str, tmp_path: Path) -> None:
    config, expected = REFUSALS[name]
    no_pods(tmp_path)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config).replace("{folder}", str(tmp_path)))
    ended = invoke("serve", "--config", str(file), HOME=str(tmp_path))
    assert ended.code == 1
    assert expected in ended.output


def test_a_port_that_is_taken_exits_1_and_is_named(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("serve", "--config", str(lab.write()), "--port", str(port))
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


def test_external_metrics_are_served_where_they_are_asked_for(lab: Lab) -> None:
    lab.config["external"] = {"enabled": True}
    # client-go lower-cases the name.
    path = f"{EXTERNAL}/namespaces/ns/dcgm_fi_dev_gpu_util?labelSelector=app%3Dinf"
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: values(client) == ["80"])
        (item,) = client.get(path).raise_for_status().json()["items"]
        assert (item["value"], item["metricLabels"]["pod"]) == ("80", "p0")
        listed = client.get(EXTERNAL).raise_for_status().json()["resources"]
        assert {"gpu_utilization", "dcgm_fi_dev_gpu_util"} <= {row["name"] for row in listed}


def test_external_metrics_are_off_unless_asked_for(lab: Lab) -> None:
    with lab.serving() as serving, serving.client() as client:
        assert client.get(EXTERNAL).status_code == 404
        assert "external.metrics.k8s.io" not in client.get("/apis").text


def test_a_key_that_cannot_be_read_leaves_the_last_pair_and_the_process(lab: Lab) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost", key_type=trustme.KeyType.ECDSA)
    certificate, key = lab.folder / "tls.crt", lab.folder / "tls.key"
    leaf.cert_chain_pems[0].write_to_path(str(certificate))
    leaf.private_key_pem.write_to_path(str(key))
    lab.config["server"] |= {"cert_file": str(certificate), "key_file": str(key)}
    lab.config["keda"] |= {"tls": True}
    (lab.folder / "certs").mkdir()
    authority.cert_pem.write_to_path(str(lab.folder / "certs" / "ca.crt"))
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        key.write_bytes(on_another_curve(key.read_bytes()))
        kept = serving.wait_for("serving certificate rejected; the last good one stays in use")
        assert str(key) in kept["error"]
        serving.wait_for("KEDA certificate rejected; the last good one stays in use")
        with serving.client() as another:
            assert ready(another)
        assert serving.process.poll() is None


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no dual-stack sockets here")
def test_by_default_both_protocol_versions_are_served(lab: Lab) -> None:
    del lab.config["server"]["host"], lab.config["keda"]["host"]
    with lab.serving() as serving:
        ports = (serving.wait_for(f"listening{where}")["port"] for where in ("", " for KEDA"))
        for port in ports:
            for host in ("127.0.0.1", "::1"):
                socket.create_connection((host, port), timeout=60).close()


def test_a_new_audit_id_with_each_request_misses_nothing_that_is_remembered(lab: Lab) -> None:
    """kube-apiserver sends one with every request that it proxies."""
    with lab.serving() as serving, serving.client() as client:
        for number in range(20):
            client.get("/apis", headers={"Audit-Id": f"{number:08}-0000-4000-8000-000000000000"})
        lines = client.get("/metrics").text.splitlines()

    counts = {
        line.partition(" ")[0]: float(line.partition(" ")[2])
        for line in lines
        if line.startswith(("gma_auth_cache_lookups_total", "gma_event_loop_lag_seconds_count"))
    }
    assert counts['gma_auth_cache_lookups_total{cache="user",result="hit"}'] >= 20
    assert counts['gma_auth_cache_lookups_total{cache="user",result="miss"}'] == 1
    assert counts["gma_event_loop_lag_seconds_count"] >= 0
