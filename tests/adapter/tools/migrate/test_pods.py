"""How prometheus-adapter runs: the chart's values, a manifest and a cluster say the same.

The shapes are those of public values and manifests: llm-d's workload variant autoscaler on
OpenShift, Dash0's headers, kube-prometheus; names and values are made up.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config.process.config import load
from adapter.tools.migrate.podsettings import REPLICAS, RESERVED
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import invoke
from tests.adapter.tools.migrate import peercluster as peer
from tests.adapter.tools.migrate.test_files import of

CHART = Path(__file__).parents[4] / "charts/gpu-metrics-adapter"
Json = dict[str, Any]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
RIGHTS = "the account of this adapter needs the rights at Prometheus that prometheus-adapter's"
URL = "--prometheus-url=https://thanos.obs.svc:9091"
CA = {"name": "ca", "mountPath": "/etc/ca", "readOnly": True}
OF_CA = {"name": "ca", "configMap": {"name": "prometheus-ca"}}
PAIR = {"name": "certificate", "mountPath": "/etc/pair/tls", "readOnly": True}
OF_PAIR = {"name": "certificate", "projected": {"sources": [{"secret": {"name": "pair"}}]}}
SYSTEM = {"name": "system", "mountPath": "/etc/ssl/certs/ca-certificates.crt"}
OF_SYSTEM = {"name": "system", "hostPath": {"path": "/etc/ssl/certs/ca-bundle.crt"}}
VARIABLES = [
    {"name": "HOST", "value": "thanos.obs.svc"},
    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "token"}}},
    {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
    {"name": "GOMEMLIMIT", "value": "100MiB"},
    {"name": "SSL_CERT_FILE", "value": "/etc/ca/ca.crt"},
]
PLACED: Json = {
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "priorityClassName": "system-cluster-critical",
    "dnsPolicy": "Default",
    "dnsConfig": {"searches": ["example.org"]},
    "affinity": {"nodeAffinity": {"x": []}, "podAntiAffinity": {"y": []}},
    "topologySpreadConstraints": [{"maxSkew": 1}],
}
SIDECAR = {"name": "oauth", "image": "oauth-proxy"}

# The values; the flags and fields that Helm makes of them, written out; what has an exclamation
# mark; and a part of the values for this chart.
CONFIGURATIONS: dict[str, tuple[Json, list[str], Json, dict[str, str], Json]] = {
    "a CA from a ConfigMap, and the token of the account": (
        {
            "metricsRelistInterval": "30s",
            "replicas": 2,
            "extraArguments": [
                "--prometheus-ca-file=/etc/ca/ca.crt",
                f"--prometheus-token-file={ACCOUNT}/token",
                "--metrics-max-age=10m",
            ],
            "extraVolumes": [OF_CA],
            "extraVolumeMounts": [CA],
        },
        [
            "--metrics-relist-interval=30s",
            "--v=4",
            "--config=/etc/adapter/config.yaml",
            "--prometheus-ca-file=/etc/ca/ca.crt",
            f"--prometheus-token-file={ACCOUNT}/token",
            "--metrics-max-age=10m",
        ],
        {"replicas": 2, "volumes": [OF_CA], "mounts": [CA]},
        {
            "--prometheus-ca-file": "copy ConfigMap prometheus-ca to the namespace of this adapter",
            "--prometheus-token-file": RIGHTS,
        },
        {
            "extraVolumes": [OF_CA],
            "extraVolumeMounts": [CA],
            "config": {
                "rules": {"relist_interval": "30s", "max_age": "10m"},
                "source": {
                    "prometheus": {
                        "url": "https://thanos.obs.svc:9091",
                        "ca_file": "/etc/ca/ca.crt",
                        "bearer_token_file": f"{ACCOUNT}/token",
                    }
                },
            },
        },
    ),
    "the account of the pods, and a long interval": (
        {"metricsRelistInterval": "10m", "extraArguments": ["--prometheus-auth-incluster"]},
        [
            "--metrics-relist-interval=10m",
            "--v=4",
            "--config=/etc/adapter/config.yaml",
            "--prometheus-auth-incluster",
        ],
        {},
        {"--prometheus-auth-incluster": RIGHTS},
        {
            "config": {
                "rules": {"relist_interval": "10m", "max_age": "10m"},
                "source": {
                    "prometheus": {
                        "url": "https://thanos.obs.svc:9091",
                        "ca_file": f"{ACCOUNT}/ca.crt",
                        "bearer_token_file": f"{ACCOUNT}/token",
                    }
                },
            }
        },
    ),
    "a client certificate in a volume with a name of this chart": (
        {
            "tls": {"enable": True},
            "listenPort": 8443,
            "extraArguments": [
                "--prometheus-ca-file=/etc/pair/tls/ca.crt",
                "--prometheus-client-tls-cert-file=/etc/pair/tls/tls.crt",
                "--prometheus-client-tls-key-file=/etc/pair/tls/tls.key",
                "--prometheus-auth-incluster",
            ],
            "extraVolumes": [OF_PAIR],
            "extraVolumeMounts": [PAIR],
        },
        [
            "--metrics-relist-interval=1m",
            "--v=4",
            "--config=/etc/adapter/config.yaml",
            "--prometheus-ca-file=/etc/pair/tls/ca.crt",
            "--prometheus-client-tls-cert-file=/etc/pair/tls/tls.crt",
            "--prometheus-client-tls-key-file=/etc/pair/tls/tls.key",
            "--prometheus-auth-incluster",
        ],
        {"port": 8443, "certificate": True, "volumes": [OF_PAIR], "mounts": [PAIR]},
        dict.fromkeys(
            (
                "--prometheus-ca-file",
                "--prometheus-client-tls-cert-file",
                "--prometheus-client-tls-key-file",
            ),
            "copy Secret pair to the namespace of this adapter",
        ),
        {
            "extraVolumes": [{**OF_PAIR, "name": "certificate-of-prometheus-adapter"}],
            "extraVolumeMounts": [{**PAIR, "name": "certificate-of-prometheus-adapter"}],
        },
    ),
    "headers, and variables": (
        {
            "prometheus": {"url": "https://$(HOST)", "port": 9091, "path": ""},
            "certManager": {"enabled": True},
            "env": VARIABLES,
            "extraArguments": [
                "--prometheus-header=X-Scope-OrgID=hunter2",
                "--prometheus-header=Authorization=Bearer $(TOKEN)",
                "--prometheus-verb=$(TOKEN)",
            ],
            "extraVolumes": [OF_CA],
            "extraVolumeMounts": [CA],
        },
        [
            "--metrics-relist-interval=1m",
            "--v=4",
            "--config=/etc/adapter/config.yaml",
            "--prometheus-header=X-Scope-OrgID=hunter2",
            "--prometheus-header=Authorization=Bearer $(TOKEN)",
            "--prometheus-verb=$(TOKEN)",
        ],
        {
            "url": "--prometheus-url=https://$(HOST):9091",
            "certificate": True,
            "env": VARIABLES,
            "volumes": [OF_CA],
            "mounts": [CA],
        },
        {
            "--prometheus-header": "write the value of Authorization, which may be secret",
            "--prometheus-verb": "write the value here, which variable TOKEN has",
            "env HTTPS_PROXY": "Prometheus is asked without a proxy",
            "env SSL_CERT_FILE": "copy ConfigMap prometheus-ca",
        },
        {
            "extraVolumes": [OF_CA],
            "extraVolumeMounts": [CA],
            "config": {
                "rules": {"relist_interval": "1m"},
                "source": {
                    "prometheus": {
                        "url": "https://thanos.obs.svc:9091",
                        "ca_file": "/etc/ca/ca.crt",
                        "headers": {"X-Scope-OrgID": "VALUE", "Authorization": "VALUE"},
                    }
                },
            },
        },
    ),
    "placed pods in the network of their nodes": (
        {
            **PLACED,
            "hostNetwork": {"enabled": True},
            "replicas": "3",
            "logLevel": 6,
            "extraContainers": [SIDECAR],
            "extraVolumes": [OF_SYSTEM],
            "extraVolumeMounts": [SYSTEM],
            "extraArguments": ["--audit-log-path=-", "--tls-min-version=VersionTLS13", "--new=1"],
        },
        [
            "--metrics-relist-interval=1m",
            "--v=6",
            "--config=/etc/adapter/config.yaml",
            "--audit-log-path=-",
            "--tls-min-version=VersionTLS13",
            "--new=1",
        ],
        {
            "replicas": 3,
            "spec": {**PLACED, "hostNetwork": True},
            "containers": [SIDECAR],
            "volumes": [OF_SYSTEM],
            "mounts": [SYSTEM],
        },
        {
            "--audit-log-path": "no counterpart: this adapter writes no audit log",
            "--tls-min-version": "no counterpart: this adapter serves TLS 1.2 and 1.3",
            "--new": "not known to this command",
            "hostNetwork": "the nodes' firewall must admit kube-apiserver",
            "containers": "sidecars, if Prometheus needs them",
            "volumeMounts /etc/ssl/certs/ca-certificates.crt": "set source.prometheus.ca_file",
        },
        {
            "replicas": 3,
            "hostNetwork": {"enabled": True},
            **{key: PLACED[key] for key in PLACED if key != "topologySpreadConstraints"},
            "affinity": {"nodeAffinity": {"x": []}},
        },
    ),
}


def values_of(given: Json) -> str:
    rules = yaml.safe_load(peer.RULES)
    of_rules = {"custom": rules["rules"], "external": rules["externalRules"], "default": False}
    prometheus = {"url": "https://thanos.obs.svc", "port": 9091}
    return yaml.safe_dump({"prometheus": prometheus, **given, "rules": of_rules})


def deployment_of(flags: list[str], fields: Json) -> Json:
    """The Deployment, as ``helm template`` prints it."""
    certificate = fields.get("certificate")
    serving = "/var/run/serving-cert"
    container = {
        "name": "prometheus-adapter",
        "image": "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0",
        "args": [
            "/adapter",
            f"--secure-port={fields.get('port', 6443)}",
            *([f"--tls-cert-file={serving}/tls.crt"] if certificate else []),
            *([f"--tls-private-key-file={serving}/tls.key"] if certificate else []),
            "--cert-dir=/tmp/cert",
            fields.get("url", URL),
            *flags,
        ],
        "volumeMounts": [
            *fields.get("mounts", []),
            {"mountPath": "/etc/adapter/", "name": "rules", "readOnly": True},
            {"mountPath": "/tmp", "name": "tmp"},
            *([{"mountPath": serving, "name": "serving"}] if certificate else []),
        ],
    }
    if "env" in fields:
        container["env"] = fields["env"]
    spec = {
        "serviceAccountName": "prometheus-adapter",
        **fields.get("spec", {}),
        "containers": [container, *fields.get("containers", [])],
        "volumes": [
            *fields.get("volumes", []),
            {"name": "rules", "configMap": {"name": "prometheus-adapter"}},
            {"name": "tmp", "emptyDir": {}},
            *([{"name": "serving", "secret": {"secretName": "pa"}}] if certificate else []),
        ],
    }
    template = {"metadata": {"labels": peer.LABELS}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "prometheus-adapter", "namespace": "monitoring"},
        "spec": {"replicas": fields.get("replicas", 1), "template": template},
    }


def defaulted(deployment: Json) -> Json:
    """The Deployment as the API server returns it, with its defaults."""
    row = copy.deepcopy(deployment)
    spec = row["spec"]["template"]["spec"]
    spec.setdefault("dnsPolicy", "ClusterFirst")
    for volume in spec["volumes"]:
        for kind in volume.keys() & {"configMap", "secret", "projected"}:
            volume[kind].setdefault("defaultMode", 420)
    return row


def manifests(*rows: Json) -> str:
    meta = {"name": "prometheus-adapter", "namespace": "monitoring"}
    configmap = {"kind": "ConfigMap", "metadata": meta, "data": {"config.yaml": peer.RULES}}
    return yaml.safe_dump_all([configmap, *rows])


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as (server, file):
        peer.furnish(server)
        yield server, file


def report_of_file(tmp_path: Path, content: str) -> Json:
    ended = of(tmp_path, content, "-o", "json")
    assert ended.code == 0, ended.output
    report: Json = json.loads(ended.output)
    return report


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_values_a_manifest_and_a_cluster_give_the_same(
    name: str, lab: tuple[ApiServer, Path], tmp_path: Path
) -> None:
    given, flags, fields, _, _ = CONFIGURATIONS[name]
    deployment = deployment_of(flags, fields)
    lab[0].answers[peer.DEPLOYMENTS] = [defaulted(deployment)]
    ended = invoke("migrate", "prometheus-adapter", "--kubeconfig", str(lab[1]), "-o", "json")
    reports = [
        json.loads(ended.output),
        report_of_file(tmp_path, manifests(deployment)),
        report_of_file(tmp_path, values_of(given)),
    ]
    live, rendered, of_values = (
        {
            "arguments": report["arguments"],
            "values": report["values"],
            "rules": [(row["name"], row["metric"], row["problem"]) for row in report["rules"]],
        }
        for report in reports
    )
    assert rendered == live
    assert of_values == live


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_everything_has_a_place_or_a_reason(name: str, tmp_path: Path) -> None:
    given, flags, _, todo, values = CONFIGURATIONS[name]
    report = report_of_file(tmp_path, values_of(given))
    marked = {row["argument"]: row["effect"] for row in report["arguments"] if row["todo"]}
    assert marked.keys() == todo.keys()
    for argument, effect in todo.items():
        assert effect in marked[argument]
    named = {row["argument"] for row in report["arguments"]}
    assert {flag.partition("=")[0] for flag in flags} <= named
    assert {key: report["values"][key] for key in values} == values
    assert "hunter2" not in json.dumps(report)
    text = of(tmp_path, values_of(given), "-o", "values").output
    assert yaml.safe_load(text) == report["values"]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_settings_are_valid(name: str, tmp_path: Path) -> None:
    config = report_of_file(tmp_path, values_of(CONFIGURATIONS[name][0]))["values"]["config"]
    config["rules"]["file"] = "/etc/rules/config.yaml"
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    assert load(file, environ={}).rules.max_age >= 60


# What an argument becomes: the effect, and whether it has an exclamation mark.
ARGUMENTS = {
    "--prometheus-url=prometheus:9090": ("not a URL", True),
    "--prometheus-url=http://{{ .Release.Name }}-prometheus": ("not a URL", True),
    "--prometheus-url=http://prometheus.${namespace}.svc:9090": ("not a URL", True),
    "--prometheus-token-file=/etc/token": ("mount the same file into the pods", True),
    f"--prometheus-token-file=/run/{ACCOUNT.removeprefix('/var/run/')}/token": (RIGHTS, True),
    f"--prometheus-ca-file={ACCOUNT}/service-ca.crt": ("source.prometheus.ca_file", False),
    "--prometheus-ca-file=": ("it names no file", False),
    "--prometheus-auth-config=/etc/login/config": ("a kubeconfig: set", True),
    "--prometheus-client-tls-cert-file=/etc/a.crt": ("without --prometheus-ca-file", False),
    "--metrics-max-age=soon": ("is not a duration: set rules.max_age", True),
    "--client-ca-file=/etc/ca.crt": ("authentication.client_ca_file: mount the same", True),
    "--requestheader-allowed-names=a,b": ("authentication.requestheader_allowed_names", False),
    "--lister-kubeconfig=/etc/k": ("config.cluster.kubeconfig, unless", True),
    "--logtostderr=true": ("not needed: config.log", False),
    "--disable-http2": ("this adapter serves HTTP/1.1", False),
    "--tls-cipher-suites=A,B": ("no counterpart", True),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_an_argument_has_a_place_or_a_reason(argument: str, tmp_path: Path) -> None:
    report = report_of_file(tmp_path, values_of({"extraArguments": [argument]}))
    rows = [row for row in report["arguments"] if row["argument"] == argument.partition("=")[0]]
    effect, todo = ARGUMENTS[argument]
    assert [row["todo"] for row in rows] == [todo]
    assert effect in rows[0]["effect"]


@pytest.mark.parametrize(
    "login", ["--prometheus-token-file=/t", "--prometheus-header=Authorization=x"]
)
def test_a_login_over_plain_http_is_named(login: str, tmp_path: Path) -> None:
    prometheus = {"prometheus": {"url": "http://prometheus", "port": 9090}}
    report = report_of_file(tmp_path, values_of({**prometheus, "extraArguments": [login]}))
    (row,) = (row for row in report["arguments"] if row["argument"] == "--prometheus-url")
    assert "set plain_http if something else encrypts" in row["effect"]
    assert row["todo"]


def test_parameters_of_argo_cd_reach_every_value(tmp_path: Path) -> None:
    parameters = {
        "pa.prometheus.url": "https://thanos.obs.svc",
        "pa.prometheus.port": "9091",
        "pa.extraArguments[1]": "--metrics-max-age=10m",
        "pa.extraArguments[0]": "--prometheus-verb=POST",
        "pa.hostNetwork.enabled": "false",
        "other.replicas": "9",
    }
    rows = [{"name": name, "value": value} for name, value in parameters.items()]
    of_rules = {"pa": {"rules": yaml.safe_load(values_of({}))["rules"]}}
    helm = {"valuesObject": of_rules, "parameters": rows}
    row = {"kind": "Application", "spec": {"source": {"helm": helm}}}
    values = report_of_file(tmp_path, yaml.safe_dump(row))["values"]
    assert values["config"]["rules"] == {"relist_interval": "1m", "max_age": "10m"}
    assert values["config"]["source"]["prometheus"] == {
        "url": "https://thanos.obs.svc:9091",
        "method": "POST",
    }
    assert not {"replicas", "hostNetwork"} & values.keys()


def test_values_say_how_the_pods_run_that_read_another_configmap(tmp_path: Path) -> None:
    values = yaml.safe_load(values_of({"extraArguments": ["--metrics-max-age=10m"]}))
    values["rules"] = {"existing": "prometheus-adapter"}
    row = {"kind": "HelmRelease", "metadata": {"name": "pa"}, "spec": {"values": values}}
    config = report_of_file(tmp_path, manifests(row))["values"]["config"]
    assert config["rules"]["max_age"] == "10m"


def test_the_deployment_that_reads_the_configmap_is_chosen(tmp_path: Path) -> None:
    flags = ["--config=/etc/adapter/config.yaml"]
    own = deployment_of(flags, {})
    other = deployment_of(flags, {"url": "--prometheus-url=http://other:9090"})
    other["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] = "other"
    config = report_of_file(tmp_path, manifests(other, own))["values"]["config"]
    assert config["source"]["prometheus"]["url"] == "https://thanos.obs.svc:9091"
    ended = of(tmp_path, yaml.safe_dump(other))
    assert "monitoring/prometheus-adapter reads ConfigMap other, which this file" in ended.output
    assert ended.code == 2


ODD: dict[str, Any] = {
    "containers": "text",
    "args": "text",
    "volumeMounts": [{"name": "x"}, 3, {"mountPath": 3}],
    "volumes": [{"name": "x", "configMap": None}, "text"],
    "env": [None, {"name": 1}],
}


@pytest.mark.parametrize("key", ODD)
def test_an_odd_deployment_does_not_crash_it(key: str, tmp_path: Path) -> None:
    row = deployment_of(["--config=/etc/adapter/config.yaml"], {})
    spec = row["spec"]["template"]["spec"]
    place = spec if key in ("containers", "volumes") else spec["containers"][0]
    place[key] = ODD[key]
    assert len(report_of_file(tmp_path, manifests(row))["rules"]) == 2


@pytest.mark.parametrize("key", [*ODD, "replicas", "tls", "extraArguments", "prometheus"])
def test_odd_values_do_not_crash_it(key: str, tmp_path: Path) -> None:
    for odd in ("text", [["x"]], {"a": None}, 3, None):
        assert len(report_of_file(tmp_path, values_of({key: odd}))["rules"]) == 2


@pytest.mark.parametrize(
    "content", ["rules: []\n", "rules: {custom: []}\n", "rules: {default: false}\n"]
)
def test_a_configuration_without_rules_is_named(content: str, tmp_path: Path) -> None:
    lines = of(tmp_path, content).output.splitlines()
    assert "Rules: the configuration has no rules" in lines
    assert "# the URL of Prometheus is not known" in of(tmp_path, content, "-o", "values").output


def test_what_is_known_of_this_chart_is_so() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["replicas"] == REPLICAS
    template = (CHART / "templates/deployment.yaml").read_text().partition("\n      volumes:\n")[2]
    names = {
        line.split(":")[1].strip()
        for line in template.splitlines()
        if line.startswith("      - name:")
    }
    assert names == RESERVED
