"""Wrong values are refused with the key and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.apiservice import SERVICE
from tests.e2e.chart import FOLDER, helm
from tests.e2e.chartvalues import CA, OWN_RULES, RULES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"replica": 1}, "additional properties 'replica' not allowed"),
        ({"image": {"pulPolicy": "x"}}, "at '/image': additional properties 'pulPolicy'"),
        ({"config": {"sorce": {}}}, "at '/config': additional properties 'sorce' not allowed"),
        ({"config": {"server": {"drain": "soon"}}}, "at '/config/server/drain'"),
        ({"config": {"server": {"port": 443}}}, "at '/config/server/port': minimum"),
        ({"config": {"keda": {"enabled": False}}}, "config.keda.enabled is set by the chart: use"),
        ({"config": {"keda": {"port": 80}}}, "at '/config/keda/port': minimum"),
        (
            {"config": {"external": {"enabled": True}}},
            "config.external.enabled is set by the chart: use externalMetrics.enabled",
        ),
        (
            {"config": {"nodepool": {"apply": True}}},
            "config.nodepool.apply is set by the chart: use nodepool.apply",
        ),
        (
            {"config": {"rules": {"resource_metrics": True}}},
            "config.rules.resource_metrics is set by the chart: use resourceMetrics.enabled",
        ),
        (
            {"resourceMetrics": {"enabled": True}},
            "resourceMetrics.enabled needs rules.resource, or rules.existingConfigMap or config.",
        ),
        ({"nodepool": {"aply": True}}, "at '/nodepool': additional properties 'aply' not allowed"),
        ({"keda": {"enable": True}}, "at '/keda': additional properties 'enable' not allowed"),
        ({"config": {"server": {"key_file": "/x"}}}, "config.server.key_file is set by the chart"),
        (
            {"config": {"source": {"prometheus": {"password": "x"}}}},
            "config.source.prometheus.password would be readable in a ConfigMap",
        ),
        ({"certificate": {"existingSecret": "ours"}}, "needs certificate.caBundle"),
        ({"certificate": {"caBundle": CA}}, "requires certificate.existingSecret"),
        ({"certificate": {"caBundle": "/ca.crt"}}, "at '/certificate/caBundle'"),
        ({"certificate": {"mode": "existingSecret"}}, "name the Secret in certificate.existing"),
        (
            {"certificate": {"mode": "certManager", "existingSecret": "ours"}},
            "certificate.mode is certManager, which creates the Secret: remove",
        ),
        (
            {"certificate": {"selfSigned": {"validDays": 200}}},
            "caValidDays must be at least twice certificate.selfSigned.validDays",
        ),
        (
            {"certificate": {"selfSigned": {"validDays": 20}}},
            "at '/certificate/selfSigned/validDays'",
        ),
        ({"certificate": {"validDays": 90}}, "additional properties 'validDays' not allowed"),
        (
            {"config": {"source": {"scrape": {"intervall": 5}}}},
            "at '/config/source/scrape': additional properties 'intervall' not allowed",
        ),
        (
            {"config": {"source": {"kind": "prom"}}},
            "at '/config/source/kind': value must be one of",
        ),
        (
            {"config": {"source": {"scrape": {"interval": "5 s"}}}},
            "at '/config/source/scrape/interval'",
        ),
        (
            {"config": {"nodepool": {"interval": 301}}},
            "at '/config/nodepool/interval': maximum: got 301, want 300",
        ),
        ({"config": {"metrics": [{"nam": "x"}]}}, "at '/config/metrics/0'"),
        (
            {"config": {"keda": {"port": 6443}}},
            "config.server.port and config.keda.port are both 6443: change one",
        ),
        (
            {"rules": {"existingConfigMap": {"name": "prometheus-adapter"}}},
            "rules.existingConfigMap needs config.source.prometheus.url",
        ),
        (
            {**RULES, "config": {"rules": {"file": "/x"}}},
            "config.rules.file is set by rules.existingConfigMap: remove one of them",
        ),
        (
            {"rules": {"custom": [{"seriesQuery": "a", "metricsQuery": "b"}]}},
            "rules needs config.source.prometheus.url",
        ),
        (
            OWN_RULES | {"rules": RULES["rules"] | OWN_RULES["rules"]},
            "rules.existingConfigMap.name is set, and there are rules in values: remove one",
        ),
        (
            OWN_RULES | {"externalMetrics": {"enabled": False}},
            "rules.external needs externalMetrics.enabled",
        ),
        (
            OWN_RULES | {"resourceMetrics": {"enabled": False}},
            "rules.resource needs resourceMetrics.enabled",
        ),
        (
            {"rules": {"custom": [{"seriesQuery": "a", "metricQuery": "b"}]}},
            "at '/rules/custom/0'",
        ),
        ({"dnsConfig": {"nameserver": []}}, "at '/dnsConfig': additional properties 'nameserver'"),
        ({"rules": {"file": "/x"}}, "at '/rules': additional properties 'file' not allowed"),
        ({"rules": {"existingConfigMap": {"name": "Ours"}}}, "at '/rules/existingConfigMap/name'"),
        ({"rules": {"existingConfigMap": {"key": "a/b"}}}, "at '/rules/existingConfigMap/key'"),
        (
            {"config": {"delegation": {"own_service": "a/b"}}},
            "config.delegation.own_service is set by the chart: use the release's Service",
        ),
        (
            {"config": {"delegation": {"service_account": "a/b"}}},
            "config.delegation.service_account is set by the chart: use config.delegation.token_f",
        ),
        ({"image": {"digest": "sha256:abc"}}, "at '/image/digest'"),
        ({"image": {"tag": "v1 "}}, "at '/image/tag'"),
        ({"nodepool": {"namespaces": ["ML"]}}, "at '/nodepool/namespaces/0'"),
        ({"nodepool": {"podDisruptionBudget": {"maxUnavailable": "0%"}}}, "maxUnavailable"),
        ({"resources": {"limits": {"memory": "512MB"}}}, "at '/resources/limits/memory'"),
        ({"resources": {"limit": {}}}, "at '/resources': additional properties 'limit'"),
        ({"tolerations": [{"effect": "Never"}]}, "at '/tolerations/0/effect'"),
        ({"affinity": {"nodeAfinity": {}}}, "at '/affinity': additional properties 'nodeAfinity'"),
        (
            {"podLabels": {"app.kubernetes.io/name": "x"}},
            "podLabels must not set app.kubernetes.io/name: the Services",
        ),
        ({"hpaReader": {"subjects": []}}, "at '/hpaReader/subjects': minItems"),
        (
            {"hpaReader": {"subjects": [{"kind": "ServiceAccount", "name": "x"}]}},
            "at '/hpaReader/subjects/0': missing property 'namespace'",
        ),
        (
            {"networkPolicy": {"apiServer": {"from": [{"ipBlock": {"cidr": "10.0.0.1"}}]}}},
            "at '/networkPolicy/apiServer/from/0/ipBlock/cidr'",
        ),
        ({"networkPolicy": {"keda": {"from": [{}]}}}, "at '/networkPolicy/keda/from/0'"),
        ({"networkPolicy": {"exporterPorts": [0]}}, "at '/networkPolicy/exporterPorts/0'"),
        ({"networkPolicy": {"apiServer": {"ports": []}}}, "minItems: got 0, want 1"),
        ({"networkPolicy": {"egress": [{"too": []}]}}, "additional properties 'too' not allowed"),
        ({"serviceMonitor": {"interval": "often"}}, "at '/serviceMonitor/interval'"),
        (
            {"serviceMonitor": {"interval": "5s"}},
            "serviceMonitor.scrapeTimeout is longer than serviceMonitor.interval",
        ),
        (
            {"serviceMonitor": {"tokenSecret": {"name": "x"}}},
            "at '/serviceMonitor/tokenSecret': properties 'key' required, if 'name' exists",
        ),
        (
            {"podDisruptionBudget": {"maxUnavailable": 0}},
            "at '/podDisruptionBudget/maxUnavailable'",
        ),
        ({"fullnameOverride": "a.b"}, "at '/fullnameOverride'"),
        ({"certificate": {"existingSecret": "Ours"}}, "at '/certificate/existingSecret'"),
        ({"priorityClassName": "High"}, "at '/priorityClassName'"),
        ({"dashboard": {"namespace": "a.b"}}, "at '/dashboard/namespace'"),
        # A section without anything in it takes its defaults away.
        ({"config": None}, "at '': missing property 'config'"),
        ({"networkPolicy": None}, "at '': missing property 'networkPolicy'"),
        ({"certificate": {"selfSigned": None}}, "at '/certificate': missing property 'selfSigned'"),
        ({"serviceMonitor": {"interval": None}}, "at '/serviceMonitor': missing property 'inter"),
        ({"podDisruptionBudget": {"maxUnavailable": None}}, "missing property 'maxUnavailable'"),
    ],
    ids=str,
)
def test_an_invalid_value_is_refused_by_name(values: Mapping[str, Any], words: str) -> None:
    done = helm("template", SERVICE, FOLDER, values=values)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize(("version", "taken"), [("1.26.15", False), ("1.27.0", True)])
def test_a_cluster_without_the_required_apis_is_refused(version: str, taken: bool) -> None:
    done = helm("template", SERVICE, FOLDER, f"--kube-version={version}", values={})
    assert (done.returncode == 0) is taken
    assert ("chart requires kubeVersion: >=1.27.0-0" in done.stderr) is not taken
