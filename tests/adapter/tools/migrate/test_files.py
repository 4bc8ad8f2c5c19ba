"""``migrate prometheus-adapter -f``: every form of a configuration, good and bad."""

from __future__ import annotations

import io
import json
from pathlib import Path
from unittest import mock

import pytest
import yaml

from adapter.answers.rules.rulefile import MAX_BYTES
from adapter.config.process.config import load
from adapter.tools.migrate import run
from adapter.tools.migrate.configfile import MOST_BYTES
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.migrate.peercluster import RULES

FILES = sorted((Path(__file__).parents[3] / "e2e" / "rulefiles").glob("*.yaml"))


def migrate(*arguments: str) -> Ended:
    return invoke("migrate", "prometheus-adapter", *arguments)


def of(tmp_path: Path, content: str | bytes, *more: str) -> Ended:
    file = tmp_path / "given.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return migrate("-f", str(file), *more)


def configmap(data: dict[str, str]) -> str:
    return yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "rules"}, "data": data})


HELM = {"prometheus": {"url": "http://prom.svc", "port": 9090, "path": "/p"}, "rules": {}}
HELM["rules"] = {
    "default": False,
    "custom": yaml.safe_load(RULES)["rules"],
    "external": yaml.safe_load(RULES)["externalRules"],
}
FORMS = {
    "the file": RULES,
    "a ConfigMap": configmap({"config.yaml": RULES}),
    "another key": configmap({"rules.yml": RULES, "other": "text"}),
    "a List": yaml.safe_dump(
        {"kind": "List", "items": [{"kind": "Service"}, yaml.safe_load(configmap({"a": RULES}))]}
    ),
    "several documents": f"kind: Service\n---\n{configmap({'config.yaml': RULES})}",
    "Helm values": yaml.safe_dump(HELM),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form_of_the_configuration_is_read(content: str, tmp_path: Path) -> None:
    ended = of(tmp_path, content, "-o", "json")
    report = json.loads(ended.output)
    assert ended.code == 0
    assert [(row["name"], row["problem"]) for row in report["rules"]] == [
        ("rules[0]", ""),
        ("externalRules[0]", ""),
    ]
    assert report["values"]["externalMetrics"] == {"enabled": True}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_public_configurations_are_taken_over(file: Path) -> None:
    ended = migrate("-f", str(file))
    assert ended.code == 0
    assert "taken over" in ended.output


def test_standard_input_is_read() -> None:
    stdin = io.TextIOWrapper(io.BytesIO(RULES.encode()))
    with mock.patch("sys.stdin", stdin):
        ended = migrate("-f", "-", "-o", "json")
    assert (ended.code, json.loads(ended.output)["source"]) == (0, "standard input")


def test_the_values_are_valid_settings(tmp_path: Path) -> None:
    ended = of(tmp_path, yaml.safe_dump(HELM), "-o", "values")
    values = yaml.safe_load(ended.output)
    file = tmp_path / "config.yaml"
    # The chart sets rules.file where it mounts the ConfigMap.
    file.write_text(yaml.safe_dump({**values["config"], "rules": {"file": "/etc/rules/a.yaml"}}))
    settings = load(file, environ={})
    assert str(settings.source.prometheus.url) == "http://prom.svc:9090/p"
    configmap = {"name": "prometheus-adapter-rules", "key": "config.yaml"}
    assert values["rules"] == {"existingConfigMap": configmap}


def test_a_broken_rule_is_named_with_its_line_and_ends_with_1(tmp_path: Path) -> None:
    ended = of(tmp_path, RULES.replace("^(.*)_total$", "^(.*_total$"))
    assert ended.code == 1
    assert "1 rule taken over, 1 not" in ended.output
    assert "rules[0], line 4: name: '^(.*_total$' is not a regular expression" in ended.output


def test_values_of_a_file_with_a_broken_rule_end_with_1(tmp_path: Path) -> None:
    ended = of(tmp_path, RULES.replace("^(.*)_total$", "^(.*_total$"), "-o", "values")
    assert ended.code == 1
    assert "gpu-metrics-adapter: rules[0]: name: " in ended.output
    assert yaml.safe_load(ended.output.partition("# values.yaml")[2])["rules"]


def test_the_default_rules_that_values_do_not_show_are_a_remark(tmp_path: Path) -> None:
    ended = of(tmp_path, "rules: {custom: []}\n")
    assert "the chart adds its default rules" in ended.output


DOUBTFUL = """
rules:
- {seriesQuery: 'up{job="a"}', metricsQuery: up, resources: {}}
- {seriesQuery: 'up{job="a"}', metricsQuery: down, resources: {}}
- seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{exported_pod!="",model!="",Hostname!=""}'
  resources:
    overrides: {exported_namespace: {resource: namespace}, exported_pod: {resource: pod}}
  name: {as: gpu_utilization}
  metricsQuery: avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


def test_a_rule_that_can_never_answer_is_not_green(tmp_path: Path) -> None:
    ended = of(tmp_path, DOUBTFUL)
    text = " ".join(ended.output.split())
    assert ended.code == 0
    assert "Rules: 3 rules taken over; 2 of them can never answer, here and there:" in text
    assert "! rules[0], line 3: up, of up{job=" in text.replace("‼", "!")
    assert "never answers: resources maps no label to an object" in text


def test_rules_that_differ_in_the_query_alone_differ_in_the_report(tmp_path: Path) -> None:
    text = " ".join(of(tmp_path, DOUBTFUL).output.split())
    assert 'rules[0], line 3: up, of up{job="a"}: up' in text
    assert 'rules[1], line 4: up, of up{job="a"}: down' in text


def test_a_rule_that_hides_a_metric_is_named_with_what_is_lost_without_it(tmp_path: Path) -> None:
    ended = of(tmp_path, DOUBTFUL)
    text = " ".join(ended.output.split())
    assert "the catalogue has gpu_utilization too: rules.prefer decides, rules by default" in text
    assert "without this rule, metric selectors lose Hostname" in text
    (*_, row) = json.loads(of(tmp_path, DOUBTFUL, "-o", "json").output)["rules"]
    assert (row["hides"], row["lost"]) == ("gpu_utilization", ["Hostname"])


RESOURCE = """
resourceRules:
  cpu: {containerQuery: a, nodeQuery: b}
  memory: {containerQuery: a, nodeQuery: b}
"""


def test_the_server_of_resource_metrics_is_looked_up_first(tmp_path: Path) -> None:
    ended = of(tmp_path, RESOURCE, "-o", "json")
    first, *_ = json.loads(ended.output)["steps"]
    assert first["commands"] == ["kubectl get apiservice v1beta1.metrics.k8s.io"]
    assert "leave resourceMetrics out of values.yaml" in first["step"]
    assert "metrics.k8s.io" not in of(tmp_path, RULES, "-o", "json").output.partition('"steps"')[2]


BAD = {
    "not YAML": (b"rules: [", "given.yaml: not YAML"),
    "not text": (b"\xff\xfe\x00", "given.yaml: not YAML"),
    "empty": (b"", "given.yaml: has no configuration"),
    "a list": (b"- a\n", "given.yaml: has no configuration"),
    "too large": (b"#" * (MOST_BYTES + 1), f"larger than {MOST_BYTES} bytes"),
    "too large a configuration": (
        b"rules: []\n" + b"#" * MAX_BYTES,
        f"is larger than {MAX_BYTES} bytes",
    ),
    "no known key": (
        configmap({"a.txt": "x", "b.txt": "{"}).encode(),
        "has no configuration of prometheus-adapter: name a file with",
    ),
    "two keys": (
        configmap({"a": RULES, "b": RULES}).encode(),
        "several configurations (ConfigMap rules, key a; ConfigMap rules, key b): keep one",
    ),
    "two ConfigMaps": (
        f"{configmap({'config.yaml': RULES})}---\n{configmap({'config.yaml': RULES})}".encode(),
        "has several configurations",
    ),
    "rules elsewhere": (b"rules: {existing: mine}\n", "the rules are in ConfigMap mine"),
    "a key twice": (b"rules: []\nrules: []\n", "rules is given twice"),
    "deep": (b"[" * 20_000, "given.yaml: not YAML"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_used_is_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    ended = of(tmp_path, content)
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert line.startswith("gpu-metrics-adapter: ")
    assert said in line


TEXT = f"{json.dumps(RULES)}\n"
TEXTS = {
    "a text": (TEXT, "given.yaml"),
    "a text and another document": (f"{TEXT}---\na: b\n", "given.yaml"),
    "a ConfigMap whose data is a text": (
        f"kind: ConfigMap\nmetadata: {{name: a}}\ndata: {TEXT}",
        "given.yaml: ConfigMap a, data",
    ),
}


@pytest.mark.parametrize(("content", "place"), TEXTS.values(), ids=TEXTS)
def test_a_configuration_may_be_a_text_at_any_place(
    content: str, place: str, tmp_path: Path
) -> None:
    ended = of(tmp_path, content)
    assert ended.code == of(tmp_path, RULES).code
    assert ended.output.splitlines()[0].endswith(place)


def test_a_fault_of_the_command_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: object) -> None:
        raise IndexError

    monkeypatch.setattr(run, "report_rules", fail)
    (line,) = of(tmp_path, RULES).output.splitlines()
    assert "given.yaml has a form that this command does not know (IndexError" in line
    assert "cluster" not in line


def test_a_file_that_is_missing_is_one_line(tmp_path: Path) -> None:
    ended = migrate("-f", str(tmp_path / "none.yaml"))
    assert (ended.code, ended.output.count("\n")) == (2, 1)
    assert "No such file or directory" in ended.output


USAGE = {
    "compare with a file": (("-f", "x", "--compare"), "--compare asks a cluster"),
    "compare without an address": (("--compare",), "--compare needs --ours"),
    "an address over plain HTTP": (("--compare", "--ours", "http://a"), "--ours is an address"),
    "an address without a CA": (("--compare", "--ours", "https://a"), "--ours needs --ca"),
    "a release without a name": (("-o", "apiservices", "--release", "a"), "write NAMESPACE/NAME"),
    "manifests without a CA": (("-o", "apiservices"), "-o apiservices needs --ca"),
    "manifests of a file": (("-f", "x", "-o", "apiservices-before"), "reads a cluster"),
}


@pytest.mark.parametrize(("arguments", "said"), USAGE.values(), ids=USAGE)
def test_options_that_do_not_fit_together_are_named(arguments: tuple[str, ...], said: str) -> None:
    ended = migrate(*arguments)
    assert ended.code == 2
    assert said in " ".join(ended.output.split())
