"""The chart's values: documented, in the schema, and in its README."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from adapter import __version__
from adapter.config.settings import Settings
from charts.generate import readme as chart
from charts.generate import values as chartvalues
from charts.generate.values import Value
from tests.docs.pages import ROOT

VALUES = (chart.CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))


def test_the_chart_is_of_the_adapters_release() -> None:
    rows = yaml.safe_load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert rows["appVersion"] == __version__


def test_what_artifact_hub_reads_is_yaml_and_right() -> None:
    """Its annotations are texts; the kinds of changes are those that it documents."""
    rows = yaml.safe_load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))
    notes = rows["annotations"]
    assert all(isinstance(note, str) for note in notes.values())
    (image,) = yaml.safe_load(notes["artifacthub.io/images"])
    repository = yaml.safe_load(VALUES)["image"]["repository"]
    assert image == {"name": repository, "image": f"{repository}:{rows['appVersion']}"}
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    for change in yaml.safe_load(notes["artifacthub.io/changes"]):
        assert change.keys() == {"kind", "description"}
        assert change["kind"] in kinds
    assert rows["maintainers"]


def test_artifact_hub_gets_an_owner_and_an_icon() -> None:
    """The release writes the icon's address, and publishes the file once it has an ID."""
    rows = yaml.safe_load((chart.CHART.parent / "artifacthub-repo.yml").read_text())
    assert rows.keys() == {"repositoryID", "owners"}
    icon = ElementTree.parse(ROOT / "docs" / "icon.svg").getroot()
    assert icon.tag.endswith("svg")
    assert "/docs/icon.svg" in (ROOT / "release" / "artifacts.py").read_text()


def test_the_schema_knows_every_section_of_the_settings() -> None:
    assert SCHEMA["properties"]["config"]["properties"].keys() == Settings.model_fields.keys()


def test_the_schema_has_exactly_the_values_that_there_are() -> None:
    """At every depth; a mapping whose keys are the user's own ends there."""
    values = yaml.safe_load(VALUES)
    differing = [
        (path, allowed ^ values_at(values, path).keys())
        for path, allowed in sections(SCHEMA, ())
        if allowed != values_at(values, path).keys() and path not in OWN
    ]
    assert differing == []


OWN: set[tuple[str, ...]] = {
    # The adapter's own settings.
    ("config",),
    # Mappings of Kubernetes' and of others, empty by default.
    ("certificate", "certManager", "issuerRef"),
    ("podSecurityContext",),
    ("securityContext",),
    ("updateStrategy",),
    ("serviceMonitor", "tokenSecret"),
    ("dnsConfig",),
    ("rules", "resource"),
}


def sections(row: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[Any, set[str]]]:
    """Yield every mapping of the schema with the keys that it allows."""
    allowed = {
        name
        for name, schema in row["properties"].items()
        # A name of another chart is allowed so that a template can answer it.
        if (*path, name) != ("global",) and not schema.get("deprecated")
    }
    yield path, allowed
    for name in allowed:
        inner = chartvalues.resolve_reference(row["properties"][name], SCHEMA)
        here = (*path, name)
        # Amounts of Kubernetes' are named by the user.
        if "properties" in inner and name not in ("resources", "affinity") and here not in OWN:
            assert inner["additionalProperties"] is False, here
            yield from sections(inner, here)


def values_at(values: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for name in path:
        values = values[name]
    return values


def test_a_value_is_read_with_its_section_default_and_meaning() -> None:
    text = """\
# About the file.

# Pods.
replicas: 2

section:
  inner:
    # What it
    # means.
    #
    # key: example
    key: {a: [1, 2]}
  # Another.
  other: ""
"""
    assert list(chartvalues.read(text)) == [
        Value(("replicas",), "2", "Pods."),
        Value(("section", "inner", "key"), "{a: [1, 2]}", "What it means."),
        Value(("section", "other"), '""', "Another."),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("replicas: 2", "values.yaml:1: replicas has no comment above it"),
        ("# Pods.\n\nreplicas: 2", "values.yaml:3: replicas has no comment above it"),
        ("a:\n  # A.\n  b: 1\n  c: 1", "values.yaml:4: a.c has no comment above it"),
        ("# List.\nrows:\n- a", "values.yaml:3: write one key per line"),
    ],
)
def test_what_is_not_documented_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(chartvalues.read(text))


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("replicas", "integer"),
        ("image.pullPolicy", "Always, IfNotPresent, Never"),
        ("podDisruptionBudget.maxUnavailable", "integer or string"),
        ("nodepool.enabled", "true or false"),
        ("nodepool.namespaces", "list of string"),
        ("podLabels", "mapping"),
    ],
)
def test_the_schema_says_what_a_value_may_be(key: str, kind: str) -> None:
    assert chartvalues.type_of(tuple(key.split(".")), SCHEMA) == kind


def test_the_readme_has_every_value() -> None:
    text = chart.page()
    for value in chartvalues.read(VALUES):
        assert f"| `{value.key}` |" in text
