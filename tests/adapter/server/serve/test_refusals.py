"""Settings with which `serve` does not start: exit codes and messages."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.pipeline.sources.login.extras import command_to_install
from tests.adapter.commandline import invoke
from tests.adapter.serving import Lab, run


def no_pods(folder: Path) -> str:
    """A pods file without any pod."""
    file = folder / "no-pods.yaml"
    file.write_text("[]")
    return str(file)


def test_a_wrong_configuration_exits_2_and_names_the_key_and_the_fix(tmp_path: Path) -> None:
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
def test_a_missing_extra_exits_2_and_names_the_key_and_the_fix(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, source, message = EXTRAS[name]
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / "config.yaml"
    kind = source.partition(":")[0]
    file.write_text(
        f"{{source: {{kind: {kind}, {source}}}, cluster: {{pods_file: {no_pods(tmp_path)}}}, "
        f"server: {{cert_dir: {tmp_path}}}}}"
    )
    ended = invoke("serve", "--config", str(file))
    assert ended.code == 2
    assert message in ended.output
    assert command_to_install(name.partition(",")[0]) in ended.output


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
            "source.prometheus: CA file /no/ca.crt: No such",
        ),
    ],
    ids=["a row of the user's own", "a CA that is not there"],
)
def test_unusable_settings_exit_2(config: dict[str, Any], said: str, tmp_path: Path) -> None:
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


def test_check_says_what_it_has_checked_and_what_not() -> None:
    code, output = invoke("serve", "--check")
    assert code == 0
    assert output == (
        "settings are valid, and the files that they name can be used; "
        "the API server and the source were not asked\n"
    )


UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({"server": {"cert_file": "/no/tls.crt", "key_file": "/no/tls.key"}}, "/no/tls.crt: No such"),
    ({"recording": {"file": "/no/day.rec"}}, "/no/day.rec: there is no folder /no; create it"),
    ({"recording": {"file": "/dev"}}, "/dev: cannot be written; name another file with --record"),
    ({"authentication": {"client_ca_file": "/no/ca.crt"}}, "client CA file /no/ca.crt: No such"),
    (
        {"authentication": {"requestheader_ca_file": "/dev/null"}},
        "request-header CA file /dev/null: ",
    ),
    ({"keda": {"tls": True, "client_ca_file": "/no/ca.crt"}}, "KEDA client CA /no/ca.crt: No such"),
    (
        {"keda": {"tls": True, "cert_file": "/no/k.crt", "key_file": "/no/k.key"}},
        "/no/k.crt: No such",
    ),
    ({"cluster": {"pods_file": "/no/pods.yaml"}}, "/no/pods.yaml: No such file or directory"),
    ({"cluster": {"kubeconfig": "/no/config"}}, "kubeconfig /no/config does not exist"),
    ({"source": {"scrape": {"bearer_token_file": "/no/token"}}}, "bearer_token_file: /no/token"),
    ({"metrics": [{"name": "a", "query": "up"}]}, "metrics.0.query: needs source.kind"),
]


@pytest.mark.parametrize(("config", "text"), UNUSABLE, ids=[text for _, text in UNUSABLE])
def test_check_names_every_file_that_cannot_be_used(
    config: dict[str, Any], text: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    code, output = invoke("serve", "--check", "--config", str(file))
    assert code == 2
    assert output.startswith("gpu-metrics-adapter: ")
    assert text in output
    assert output.count("\n") == 1


def test_check_names_all_reasons_at_once_and_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    config: dict[str, Any] = {"server": {"cert_dir": str(tmp_path / "certificates")}}
    for row, _ in [UNUSABLE[0], *UNUSABLE[3:5]]:
        for section, keys in row.items():
            config[section] = config.get(section, {}) | keys
    file.write_text(yaml.safe_dump(config))
    code, output = invoke("serve", "--check", "--config", str(file))
    assert code == 2
    assert output.count("\n") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "99999"), "--port: Input should be less than or equal to 65535 (got 99999)"),
        (("--source", "prometheus"), "--source: kind prometheus needs prometheus.url"),
        (
            ("--prometheus-url", "http://e"),
            "settings: source.prometheus.url (--prometheus-url) is set, but source.kind is scrape",
        ),
        (("--prometheus-url", "e"), "--prometheus-url: "),
    ],
)
def test_an_error_names_the_flag(arguments: tuple[str, ...], said: str) -> None:
    code, output = invoke("serve", "--check", *arguments)
    assert code == 2
    assert output.startswith(f"gpu-metrics-adapter: {said}")


def test_a_certificate_of_its_own_is_kept_where_only_its_user_writes(tmp_path: Path) -> None:
    arguments = ("serve", "--pods-file", no_pods(tmp_path), "--port", "0")
    ended = invoke(
        *arguments,
        until=lambda written: "serving certificate issued" in written,
        XDG_STATE_HOME=str(tmp_path / "state"),
        GMA_KEDA__ENABLED="false",  # gRPC's threads would stay in this process
    )
    assert ended.code == 0
    folder = tmp_path / "state" / "gpu-metrics-adapter" / "certs"
    assert sorted(path.name for path in folder.iterdir()) == [
        "ca.crt",
        "ca.key",
        "tls.crt",
        "tls.key",
    ]
    assert folder.stat().st_mode & 0o077 == 0


REFUSALS = {
    "pods file that is not there": (
        {"cluster": {"pods_file": "/no/such/pods.yaml"}, "server": {"cert_dir": "{folder}"}},
        "/no/such/pods.yaml: No such file or directory; correct cluster.pods_file (--pods-file)",
    ),
    "pods file that is empty": (
        {"cluster": {"pods_file": "/dev/null"}, "server": {"cert_dir": "{folder}"}},
        "/dev/null is empty; write manifests, or [] for no objects",
    ),
    "no cluster": ({}, "or name a pods file to run without a cluster"),
    "kubeconfig that is not there": (
        {"cluster": {"kubeconfig": "/no/such/kubeconfig"}},
        "kubeconfig /no/such/kubeconfig does not exist; name one that does",
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
def test_a_failure_to_start_exits_1_with_the_reason(name: str, tmp_path: Path) -> None:
    config, expected = REFUSALS[name]
    no_pods(tmp_path)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config).replace("{folder}", str(tmp_path)))
    ended = invoke("serve", "--config", str(file), HOME=str(tmp_path))
    assert ended.code == 1
    assert expected in ended.output


def test_a_port_in_use_exits_1_and_is_named(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = invoke("serve", "--config", str(lab.write()), "--port", str(port))
    assert ended.code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.output
