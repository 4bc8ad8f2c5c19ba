"""Where people keep prometheus-adapter's configuration, after the shapes of public repositories.

The shapes are those of some thirty public repositories, such as mesosphere/kommander-applications
(values in a ConfigMap), prometheus-operator/kube-prometheus (the ConfigMap ``adapter-config``) and
Hopsworks' chart (an umbrella in an umbrella); names and values are made up. Each gives
the same rules, and `-o rules` prints a file that `serve` reads.
"""

from __future__ import annotations

import base64
import json
import textwrap
from pathlib import Path

import pytest
import yaml

from adapter.answers.rules.ruleset import rules_of
from tests.adapter.tools.migrate.peercluster import RULES
from tests.adapter.tools.migrate.test_files import of

GIVEN = yaml.safe_load(RULES)
VALUES = {
    "prometheus": {"url": "http://prom.obs.svc", "port": 9090},
    "rules": {"default": False, "custom": GIVEN["rules"], "external": GIVEN["externalRules"]},
}


def dump(*rows: object) -> str:
    return yaml.safe_dump_all(rows, sort_keys=False)


def named(kind: str, name: str, **parts: object) -> dict[str, object]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "obs"}, **parts}


def text(value: object) -> str:
    return yaml.safe_dump(value)


def application(**helm: object) -> dict[str, object]:
    source = {"repoURL": "https://example.org/charts", "chart": "prometheus-adapter", "helm": helm}
    return named("Application", "pa", spec={"source": source})


COMPUTED = {
    **VALUES,
    "rules": {**VALUES["rules"], "existing": None, "resource": {}},
    "affinity": {},
    "image": {"tag": ""},
}
OTHER = named("ConfigMap", "dashboards", data={"board.json": '{\n"rules": []}\n', "rules": "a\nb"})
ALERTS = named("PrometheusRule", "a", spec={"groups": [{"rules": [{"alert": "A", "expr": "up"}]}]})
ROLE = {"kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": ["pods"]}]}
CONFIGMAP = named("ConfigMap", "pa", data={"config.yaml": RULES})
FORMS = {
    "a configuration file": RULES,
    "a configuration file in JSON": json.dumps(GIVEN),
    "a ConfigMap of kube-prometheus": dump(
        named("ConfigMap", "adapter-config", data={"config.yaml": RULES})
    ),
    "a ConfigMap with another key": dump(
        named("ConfigMap", "a", data={"triton-adapter.yml": RULES})
    ),
    "a ConfigMap with the values": dump(
        named("ConfigMap", "a", data={"values.yaml": text(VALUES)})
    ),
    "a ConfigMap with values as its configuration": dump(
        named("ConfigMap", "a", data={"config.yaml": text({"rules": VALUES["rules"]})})
    ),
    "a ConfigMap as kubectl prints it": dump(
        {
            **CONFIGMAP,
            "metadata": {
                "name": "pa",
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": json.dumps(CONFIGMAP) + "\n"
                },
            },
        }
    ),
    "a Secret": dump(
        named("Secret", "a", data={"values.yaml": base64.b64encode(text(VALUES).encode()).decode()})
    ),
    "a Secret as text": dump(named("Secret", "a", stringData={"values.yaml": text(VALUES)})),
    "the values": text(VALUES),
    "the values in JSON": json.dumps(VALUES),
    "helm get values": "USER-SUPPLIED VALUES:\n" + text(VALUES),
    "helm get values -a": "COMPUTED VALUES:\n" + text(COMPUTED),
    "helm get values -a -o json": json.dumps({"affinity": {}, **COMPUTED}).replace("<", "\\u003c"),
    "an umbrella chart": text({"global": {}, "prometheus-adapter": VALUES, "other": {"rules": {}}}),
    "an umbrella in an umbrella": text({"prometheus": {"prometheus-adapter": VALUES}}),
    "an umbrella whose rules have an anchor": "x-rules: &r\n"
    + textwrap.indent(text(VALUES["rules"]), "  ")
    + "prometheus-adapter:\n  rules:\n    <<: *r\n    existing: null\n  prometheus: {url: 'http://prom.obs.svc'}\n",
    "values that an anchor repeats": "x-values: &v\n"
    + textwrap.indent(text(VALUES), "  ")
    + "prometheus-adapter: *v\n",
    "Flux 1": dump(named("HelmRelease", "pa", spec={"chart": {"name": "p"}, "values": VALUES})),
    "Flux 2": dump(
        {"apiVersion": "helm.toolkit.fluxcd.io/v2"}
        | named("HelmRelease", "pa", spec={"chart": {"spec": {"chart": "p"}}, "values": VALUES})
    ),
    "Flux, of an umbrella": dump(
        named("HelmRelease", "pa", spec={"values": {"prometheus-adapter": VALUES}})
    ),
    "Flux, with values from a ConfigMap": dump(
        named("ConfigMap", "pa-values", data={"values.yaml": text(VALUES)}),
        named(
            "HelmRelease",
            "pa",
            spec={
                "valuesFrom": [{"kind": "ConfigMap", "name": "pa-values"}],
                "values": {"replicas": 2, "rules": {"default": False}},
            },
        ),
    ),
    "Flux, with values from a Secret": dump(
        named(
            "HelmRelease",
            "pa",
            spec={"valuesFrom": [{"kind": "Secret", "name": "s", "valuesKey": "v"}], "values": {}},
        ),
        named("Secret", "s", data={"v": base64.b64encode(text(VALUES).encode()).decode()}),
    ),
    "Argo CD, values": dump(application(values=text(VALUES))),
    "Argo CD, valuesObject": dump(application(valuesObject=VALUES)),
    "Argo CD, both": dump(application(values=text({"rules": {"custom": []}}), valuesObject=VALUES)),
    "Argo CD, parameters": dump(
        application(
            values=text({"rules": VALUES["rules"]}),
            parameters=[{"name": "prometheus.url", "value": "http://prom.obs.svc"}],
        )
    ),
    "Argo CD, sources": dump(
        named(
            "Application",
            "pa",
            spec={"sources": [{"ref": "values"}, {"helm": {"valuesObject": VALUES}}]},
        )
    ),
    "Argo CD, an ApplicationSet": dump(
        named(
            "ApplicationSet",
            "pa",
            spec={"template": {"spec": {"source": {"helm": {"values": text(VALUES)}}}}},
        )
    ),
    "k3s": dump(named("HelmChart", "pa", spec={"valuesContent": text(VALUES)})),
    "Crossplane": dump(named("Release", "pa", spec={"forProvider": {"values": VALUES}})),
    "a helmfile": text({"releases": [{"name": "pa", "chart": "p", "values": [VALUES]}]}),
    "Kustomize": text({"helmCharts": [{"name": "prometheus-adapter", "valuesInline": VALUES}]}),
    "Fleet": text({"helm": {"chart": "prometheus-adapter", "values": VALUES}}),
    "helm template": dump(ROLE, OTHER, ALERTS, CONFIGMAP, named("Deployment", "pa", spec={})),
    "kubectl get configmaps": dump({"kind": "ConfigMapList", "items": [OTHER, CONFIGMAP]}),
    "a List of Lists' objects": dump({"kind": "List", "items": [ROLE, ALERTS, CONFIGMAP]}),
    "values beside the ConfigMap that they name": dump(
        {"prometheus-adapter": {**VALUES, "rules": {"existing": "pa"}}}, CONFIGMAP
    ),
    "a HelmRelease beside the ConfigMap that it names": dump(
        named("HelmRelease", "r", spec={"values": {**VALUES, "rules": {"existing": "pa"}}}),
        CONFIGMAP,
    ),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_rules(content: str, tmp_path: Path) -> None:
    ended = of(tmp_path, content, "-o", "json")
    assert ended.code == 0, ended.output
    report = json.loads(ended.output)
    assert [(row["name"], row["problem"]) for row in report["rules"]] == [
        ("rules[0]", ""),
        ("externalRules[0]", ""),
    ]
    assert "resourceMetrics" not in report["values"]


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form_gives_a_file(content: str, tmp_path: Path) -> None:
    ended = of(tmp_path, content, "-o", "rules")
    assert ended.code == 0
    rules = rules_of(ended.output.encode())
    assert not rules.problems
    assert [rule.name for rule in (*rules.custom, *rules.external)] == [
        "rules[0]",
        "externalRules[0]",
    ]


WITH_VALUES = [name for name in FORMS if "onfig" not in name and "helm template" not in name]
WITH_VALUES = [name for name in WITH_VALUES if "List" not in name]


@pytest.mark.parametrize("name", WITH_VALUES)
def test_values_name_prometheus(name: str, tmp_path: Path) -> None:
    values = json.loads(of(tmp_path, FORMS[name], "-o", "json").output)["values"]
    assert values["config"]["source"]["prometheus"]["url"] == "http://prom.obs.svc:9090"


def test_parameters_of_argo_cd_are_values_too(tmp_path: Path) -> None:
    values = {"rules": {key: VALUES["rules"][key] for key in ("custom", "external")}}
    default = {"name": "rules.default", "value": "false"}
    assert "its default rules" in of(tmp_path, dump(application(valuesObject=values))).output
    ended = of(tmp_path, dump(application(valuesObject=values, parameters=[default])))
    assert "its default rules" not in ended.output
    existing = {"name": "prometheus-adapter.rules.existing", "value": "mine"}
    umbrella = {"prometheus-adapter": values}
    ended = of(tmp_path, dump(application(valuesObject=umbrella, parameters=[existing])))
    assert (ended.code, "the rules are in ConfigMap mine" in ended.output) == (2, True)


REFUSED = {
    "two ConfigMaps": (
        dump(CONFIGMAP, named("ConfigMap", "pb", data={"config.yaml": RULES})),
        "(ConfigMap obs/pa, key config.yaml; ConfigMap obs/pb, key config.yaml): keep one",
    ),
    "two releases": (
        dump(*(named("HelmRelease", name, spec={"values": VALUES}) for name in ("a", "b"))),
        "several configurations (HelmRelease obs/a, spec.values; HelmRelease obs/b, spec.values)",
    ),
    "rules elsewhere": (
        dump(named("HelmRelease", "a", spec={"values": {"rules": {"existing": "mine"}}})),
        "HelmRelease obs/a, spec.values: the rules are in ConfigMap mine: add its manifest",
    ),
    "values elsewhere": (
        dump(named("HelmRelease", "a", spec={"valuesFrom": [{"kind": "Secret", "name": "s"}]})),
        "valuesFrom takes values from Secret s, which this file does not have: add its manifest",
    ),
    "a ConfigMap that is not YAML": (
        dump(named("ConfigMap", "a", data={"config.yaml": "rules:\n- {a\n"})),
        "ConfigMap obs/a, key config.yaml: not YAML: line ",
    ),
    "other objects": (dump(ROLE, ALERTS, OTHER), "has no configuration of prometheus-adapter"),
    "an umbrella without rules": (
        text({"prometheus-adapter": {"enabled": True}}),
        "has no configuration of prometheus-adapter",
    ),
}


@pytest.mark.parametrize(("content", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_named(content: str, said: str, tmp_path: Path) -> None:
    ended = of(tmp_path, content)
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert said in line


def test_empty_resource_rules_turn_nothing_on(tmp_path: Path) -> None:
    ended = of(tmp_path, text(COMPUTED), "-o", "values")
    assert "resourceMetrics" not in yaml.safe_load(ended.output)
    values = {**COMPUTED, "rules": {"resource": {"window": "1m", "cpu": {}, "memory": {}}}}
    ended = of(tmp_path, text(values), "-o", "values")
    assert yaml.safe_load(ended.output)["resourceMetrics"] == {"enabled": True}


def test_values_that_are_elsewhere_are_a_remark(tmp_path: Path) -> None:
    release = named(
        "HelmRelease",
        "a",
        spec={"valuesFrom": [{"kind": "ConfigMap", "name": "more"}], "values": VALUES},
    )
    ended = of(tmp_path, dump(release))
    assert ended.code == 0
    assert "valuesFrom takes values from ConfigMap more" in " ".join(ended.output.split())


def test_the_first_step_writes_the_file(tmp_path: Path) -> None:
    ended = of(tmp_path, FORMS["Flux 2"])
    assert f"-f {tmp_path}/given.yaml -o rules > rules.yaml" in ended.output


def test_rules_with_a_mistake_are_printed_and_named(tmp_path: Path) -> None:
    ended = of(tmp_path, RULES.replace("^(.*)_total$", "^(.*_total$"), "-o", "rules")
    assert ended.code == 1
    assert "gpu-metrics-adapter: rules[0]: name: " in ended.output
