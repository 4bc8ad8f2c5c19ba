"""Rules in the settings, on the command line, and in the metrics of the process."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
import structlog
from click.testing import CliRunner

from adapter.__main__ import main
from adapter.config.process.config import ConfigError, load
from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from adapter.server.serve.pipeline import PipelineSwitcher
from adapter.server.serve.providers import build_providers
from adapter.server.serve.rulemetrics import FAMILIES, rule_families
from adapter.server.serve.rules import build_rules, load_rules

RULES = """\
rules:
- {seriesQuery: up, metricsQuery: up, resources: {template: <<.Resource>>}}
- seriesQuery: up
  resources: {overrides: {node: {resource: node}}}
  metricsQuery: <<.Nope>>
externalRules:
- {seriesQuery: up, metricsQuery: up}
"""
URL = "http://prometheus:9090"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "rules.yaml"
    made.write_text(RULES)
    return made


def check(file: Path, *more: str) -> tuple[int, str]:
    arguments = ["serve", "--check", "--prometheus-adapter-config", str(file), *more]
    done = CliRunner().invoke(main, arguments, env={"GMA_SOURCE__PROMETHEUS__URL": URL})
    return done.exit_code, done.output


def test_check_names_each_mistake_with_file_line_and_reason(file: Path) -> None:
    code, output = check(file)
    assert code == 2
    broken, external = output.strip().splitlines()
    assert broken.startswith(f"gpu-metrics-adapter: {file}: line 5: rules[1]: metricsQuery: ")
    assert broken.endswith("; this rule is left out")
    assert "externalRules are not served: set external.enabled" in external


def test_check_accepts_a_file_without_mistakes(file: Path) -> None:
    file.write_text(RULES.replace("<<.Nope>>", "<<.Series>>"))
    code, output = check(file)
    assert code == 0
    assert "settings are valid" in output


@pytest.mark.parametrize(
    ("prefer", "answers"), [("rules", "this rule answers"), ("catalogue", "the catalogue answers")]
)
def test_a_rule_that_hides_a_metric_is_named_at_the_start(
    prefer: str, answers: str, file: Path
) -> None:
    named = "name: {as: gpu_utilization}, resources: {template: <<.Resource>>}"
    file.write_text(f"rules:\n- {{seriesQuery: up, metricsQuery: up, {named}}}\n")
    problem = f"rules[0]: the catalogue has gpu_utilization too; {answers} (rules.prefer)"
    with mock.patch.dict(os.environ, {"GMA_RULES__PREFER": prefer}):
        code, output = check(file)
    assert code == 0
    assert problem in output
    settings = load(
        flags={"rules.file": file, "rules.prefer": prefer, "source.prometheus.url": URL}, environ={}
    )
    with structlog.testing.capture_logs() as logs:
        build_rules(settings, ObjectLookup(PodIndex(), Services(), Nodes()), None)
    assert problem in [row.get("problem") for row in logs]


@pytest.mark.parametrize(
    "query",
    ["'sum(up{<<.LabelMatchers>>,job'", "!!int ''", "'<<print " + "9" * 5_000 + ">>'"],
    ids=["a selector that is cut off", "a tag without a value", "a number of 5,000 digits"],
)
def test_a_rule_that_no_parser_expects_ends_no_process(query: str, file: Path) -> None:
    file.write_text(f"{RULES}- {{seriesQuery: up, metricsQuery: {query}}}\n")
    code, output = check(file)
    assert code == 2
    assert ": line 8: externalRules[1]: metricsQuery" in output
    assert "Traceback" not in output


def test_check_rejects_what_is_not_a_rules_file(file: Path) -> None:
    file.write_text("rules: {")
    code, output = check(file)
    assert code == 2
    assert output.startswith(f"gpu-metrics-adapter: {file}: is not YAML: line ")
    code, output = check(file.with_name("nothing"))
    assert code == 2
    assert "cannot be read (No such file or directory); correct rules.file" in output


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"rules.file": "rules.yaml"}, "rules.file needs source.prometheus.url"),
        (
            {"rules.max_age": "30s"},
            "rules.max_age must be at least rules.relist_interval",
        ),
        ({"rules.cache": "61s"}, "rules.cache"),
        ({"rules.prefer": "both"}, "rules.prefer"),
    ],
)
def test_settings_that_contradict_each_other_are_rejected(
    flags: dict[str, object], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        load(None, flags, {})


def test_without_a_file_there_are_no_rules() -> None:
    objects = ObjectLookup(PodIndex(), Services(), Nodes())
    assert load_rules(Settings()) is None
    assert build_rules(Settings(), objects, None) is None


async def test_the_metrics_of_the_process_show_rules_and_mistakes(file: Path) -> None:
    settings = load(None, {"rules.file": str(file), "source.prometheus.url": URL}, {})
    service = build_rules(settings, ObjectLookup(PodIndex(), Services(), Nodes()), None)
    assert service is not None
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in rule_families(service)
        for sample in family.samples
    }
    assert values["gma_rules", "custom"] == 1
    assert values["gma_rules", "external"] == 1
    assert values["gma_rules_broken",] == 1
    assert values["gma_rules_file_ok",] == 1
    assert values["gma_rule_values_left_out_total", "nan"] == 0
    assert values["gma_rule_query_failures_total", "busy"] == 0
    named = {family.name.removesuffix("_total") for family in rule_families(service)}
    # The time of the last discovery is absent before the first.
    absent = "gma_rule_discovery_last_success_timestamp_seconds"
    assert named == {family.name.removesuffix("_total") for family in FAMILIES} - {absent}


async def test_readiness_waits_for_the_first_discovery_even_if_it_fails(file: Path) -> None:
    url = "http://127.0.0.1:9"
    flags = {"rules.file": str(file), "source.prometheus.url": url, "source.prometheus.timeout": 1}
    objects = ObjectLookup(PodIndex(), Services(), Nodes())
    pipelines = PipelineSwitcher(Catalog(), objects)
    providers = build_providers(load(None, flags, {}), pipelines, objects, None)
    (check,) = providers.checks
    assert check.probe() == "the series of the rules have not been discovered yet"
    assert providers.rules is not None
    await providers.rules.discover()
    assert check.probe() is None
    assert providers.rules.discovery_failures == 1
    await providers.rules.store.close()
