"""Every block of every document is one of the kinds that are checked, and holds what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from adapter.config.process.config import load
from tests.docs import fieldpaths
from tests.docs.blocks import LANGUAGES, Kind, documents, kind
from tests.docs.manifests import manifests, whole
from tests.docs.pages import Block, Page, blocks, pages
from tests.needs import PROMTOOL, needed_by_fixture

MANIFESTS = manifests()


def named(*kinds: Kind) -> list[Block]:
    return [block for block in blocks("yaml") if kind(block) in kinds]


def every(found: list[Block]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", found, ids=lambda block: block.place)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Page) -> None:
    assert {block.language for block in page.blocks} <= LANGUAGES
    for block in page.blocks:
        if block.language == "yaml":
            kind(block)
            documents(block)


@every(named(Kind.SETTINGS))
def test_settings_are_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    assert load(file, environ={}) != load(environ={})


@every([block for block in named(Kind.VALUES) if "config" in (yaml.safe_load(block.text) or {})])
def test_settings_in_values_are_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    values = yaml.safe_load(block.text)
    file.write_text(yaml.safe_dump(values["config"]))
    # What the chart adds for an existing ConfigMap.
    environ = {"GMA_RULES__FILE": "/rules"} if "rules" in values else {}
    assert load(file, environ=environ) != load(environ={})


def test_json_is_json() -> None:
    assert all(json.loads(block.text) for block in blocks("json"))


def test_parts_of_manifests_have_a_whole() -> None:
    assert all(whole(block) for block in named(Kind.PART))


@every(named(Kind.LISTED))
def test_a_manifest_of_a_listed_kind_has_only_its_fields(block: Block) -> None:
    assert [path for one in documents(block) for path in fieldpaths.unknown(one)] == []


def test_a_field_that_a_listed_kind_has_not_is_found() -> None:
    wrong = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "a"},
        "spec": {
            "project": "default",
            "source": {"helm": {"valuesObject": {"any": 1}, "value": 1}},
            "ignoreDifferences": [{"kind": "Secret", "jsonPointer": ["/data"]}],
        },
    }
    assert fieldpaths.unknown(wrong) == [
        "spec.source.helm.value",
        "spec.ignoreDifferences[].jsonPointer[]",
    ]


def test_every_manifest_names_itself() -> None:
    """What an API server wants of all of them; the rest is its own to say (`make e2e`)."""
    nameless = [place for place, obj in MANIFESTS if "name" not in obj["metadata"]]
    assert MANIFESTS
    assert nameless == []


@pytest.fixture
@needed_by_fixture(PROMTOOL)
def promtool() -> str:
    return PROMTOOL.path()


def test_prometheus_files_and_queries_are_accepted(promtool: str, tmp_path: Path) -> None:
    queries = [
        {"record": "document", "expr": expression}
        for block in blocks("promql")
        for expression in block.text.split("\n\n")
    ]
    expressions = tmp_path / "expressions.yml"
    expressions.write_text(yaml.safe_dump({"groups": [{"name": "documents", "rules": queries}]}))
    checks = [("rules", expressions)] if queries else []
    for block in named(Kind.RULES, Kind.PROMETHEUS):
        file = tmp_path / f"{block.page.replace('/', '_')}-{block.line}.yml"
        file.write_text(block.text)
        checks.append(("rules" if kind(block) is Kind.RULES else "config", file))
    for what, file in checks:
        done = subprocess.run(
            [promtool, "check", what, *(["--syntax-only"] if what == "config" else []), file],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{file.name}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("text", "comment", "what"),
    [
        ("apiVersion: v1\nkind: Pod\n", "", Kind.MANIFEST),
        ("apiVersion: v1\nkind: Pod\n---\na: 1\n", "", None),
        ("metrics: []\n", "in: HorizontalPodAutoscaler.spec", Kind.PART),
        ("a: 1\n", "foreign: other values", Kind.FOREIGN),
        ("a: 1\n", "an aside", None),
        ("# values.yaml of a cluster\na: 1\n", "", Kind.VALUES),
        ("# config.yaml: see there\na: 1\n", "", Kind.SETTINGS),
        ("# other.yaml\na: 1\n", "", None),
        ("", "", None),
    ],
)
def test_a_block_is_identified_by_its_first_line_or_its_comment(
    text: str, comment: str, what: Kind | None
) -> None:
    block = Block("page", 1, "yaml", text, comment)
    if what is None:
        with pytest.raises(ValueError, match="what is this"):
            kind(block)
    else:
        assert kind(block) is what


@pytest.mark.parametrize(
    "text", ["a: …\n", "a: {b: 1, …}\n", "a:\n- ...\n", "a: 1\n...\nb: 2\n", "a: b: c\n"]
)
def test_a_block_is_written_out(text: str) -> None:
    with pytest.raises(ValueError, match=r"^page:1: "):
        documents(Block("page", 1, "yaml", text))
