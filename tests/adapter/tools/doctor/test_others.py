"""The checks of rules and delegates: what they read, and what they advise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.tools.client.access import cluster
from adapter.tools.doctor.facts import Fact, Review, UnreadError
from adapter.tools.doctor.manifests import read_files
from adapter.tools.doctor.results import Outcome
from adapter.tools.doctor.rights import delegate_reviews
from adapter.tools.doctor.rulesfile import Mounted, find_mounted_rules, read_rules_of
from adapter.tools.doctor.runner import run
from tests.adapter.clientapi import api_server
from tests.adapter.tools.doctor.clean import (
    FROM_STORE,
    RULES,
    apiservice,
    clean,
    clean_store,
    container,
    own_workload,
)
from tests.adapter.tools.doctor.faults.others import FAULTS

BAD = RULES.replace("<<.Series>>", "<<.Serie>>")
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def test_a_broken_rule_is_named_with_line_and_reason() -> None:
    facts = clean()
    FAULTS["GMA721"][0](facts)
    (result,) = run(facts, ("GMA721",))
    (finding,) = result.findings
    assert finding.subject == "configmap gpu-metrics/rules"
    assert finding.message.startswith("line 5: rules[0]: metricsQuery: the template")
    assert "there is no field .Serie" in finding.message
    assert finding.command == "kubectl -n gpu-metrics edit configmap rules"


def manifests(folder: Path, text: str) -> Path:
    labels = {"app.kubernetes.io/name": "gpu-metrics-adapter"}
    url = "http://prometheus.monitoring:9090"
    settings = {"source": {"prometheus": {"url": url}}}
    serve: Any = container()
    serve |= {"volumeMounts": [{"name": "rules", "mountPath": "/r"}]}
    # As the chart gives it.
    serve |= {"env": [{"name": "GMA_RULES__FILE", "value": "/r/rules.yaml"}]}
    items = [{"key": "config.yaml", "path": "rules.yaml"}]
    volumes = [
        {"name": "config", "configMap": {"name": "gma"}},
        {"name": "rules", "configMap": {"name": "prometheus-adapter", "items": items}},
    ]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [serve], "volumes": volumes}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "gma", "namespace": "gpu-metrics", "labels": labels}
    rows: Sequence[dict[str, Any]] = (
        {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": meta, "spec": spec},
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": meta,
            "data": {"config.yaml": yaml.safe_dump(settings)},
        },
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "prometheus-adapter"},
            "data": {"config.yaml": text},
        },
    )
    file = folder / "manifests.json"
    shown = rows[: 3 if text else 2]
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": shown}))
    return file


@pytest.mark.parametrize(
    ("text", "outcome"), [(RULES, Outcome.FINE), (BAD, Outcome.FOUND), ("", Outcome.SKIPPED)]
)
def test_the_rules_of_manifests_are_checked_without_a_cluster(
    tmp_path: Path, text: str, outcome: Outcome
) -> None:
    facts = read_files([manifests(tmp_path, text)]).facts()
    settings, broken = run(facts, ("GMA701", "GMA721"))
    assert broken.outcome is outcome
    assert settings.outcome is Outcome.FINE


def test_a_configmap_that_does_not_exist_is_a_finding(tmp_path: Path) -> None:
    own = own_workload(FROM_STORE)
    assert find_mounted_rules(own) == Mounted("gpu-metrics", "rules", "config.yaml")

    async def look() -> str:
        async with cluster(kubeconfig) as api:
            rules = await read_rules_of(api, own)
        assert rules
        return rules.rejected

    with api_server(tmp_path) as (server, kubeconfig):
        assert "does not exist" in asyncio.run(look())
        path = "/api/v1/namespaces/gpu-metrics/configmaps/rules"
        server.answers[path] = {"metadata": {"name": "rules"}, "data": {"other": ""}}
        assert "has no key config.yaml" in asyncio.run(look())


def test_without_the_configmap_the_adapters_own_count_is_used() -> None:
    facts = clean()
    FAULTS["GMA721"][2](facts)
    (result,) = run(facts, ("GMA721",))
    assert [finding.message for finding in result.findings] == ["leaves out 2 rules"]
    facts.self_pages = Fact(unread=UnreadError("the adapter's own metrics are closed"))
    (result,) = run(facts, ("GMA721",))
    assert result.outcome is Outcome.UNKNOWN
    assert result.why == "bob may not get configmaps in gpu-metrics"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "it does not answer"),
        (1, "its certificate is not trusted"),
        (2, "it does not get a token that it accepts"),
        (4, "its answer is not a list of metrics"),
    ],
)
def test_a_delegate_without_a_list_is_named_with_its_cause(number: int, said: str) -> None:
    facts = clean()
    FAULTS["GMA715"][number](facts)
    (result,) = run(facts, ("GMA715",))
    (finding,) = result.findings
    assert finding.subject == "delegate old"
    assert said in finding.message


@pytest.mark.parametrize(
    ("service", "advice"),
    [
        ("datadog/cluster-agent", ("make that program a delegate", "or take its rules over")),
        ("monitoring/prometheus-adapter", ("it is a delegate: point the APIService",)),
    ],
)
def test_a_foreign_apiservice_has_two_ways_out(service: str, advice: Sequence[str]) -> None:
    facts = clean_store()
    names = ("v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")
    facts.apiservices = Fact([apiservice(name, service) for name in names])
    for result in run(facts, ("GMA005", "GMA014")):
        (finding,) = result.findings
        assert all(words in finding.fix for words in advice)


def test_the_rights_of_delegation_are_those_of_the_settings(tmp_path: Path) -> None:
    async def look(config: str) -> list[Review]:
        async with cluster(kubeconfig) as api:
            return list(await delegate_reviews(api, own_workload(config)))

    with api_server(tmp_path) as (server, kubeconfig):
        server.answers[REVIEWS] = {"status": {"allowed": False}}
        account, token = asyncio.run(look(FROM_STORE))
        assert asyncio.run(look("source: {kind: scrape}\n")) == []
    assert account.user == "system:serviceaccount:gpu-metrics:gma-delegation"
    assert (account.verb, account.resource) == ("get", "*.custom.metrics.k8s.io")
    assert (token.verb, token.resource) == ("create", "serviceaccounts/token")
    assert token.command.startswith("kubectl create role")
