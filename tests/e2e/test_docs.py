"""Examples of the documents, run with the programs that readers use.

tests/docs/blocks.py has the rules; what needs no cluster is checked in tests/docs.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import Kind, kind
from tests.docs.commands import Command, commands
from tests.docs.manifests import manifests
from tests.docs.pages import ROOT, Page, blocks, pages
from tests.docs.unverified import CHART, OURS, gap
from tests.e2e import chart, crds, programs
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import RefusedError
from tests.e2e.process import FailedError, wait_until
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGES = pages()
COMMANDS = [(page, command) for page in PAGES for command in commands(page)]
DEFINED = (crds.KEDA, crds.KARPENTER)
DRY = frozenset(
    {"annotate", "apply", "create", "delete", "label", "patch", "scale", "set", "taint"}
)
"""Verbs of kubectl that can be tried on an API server without a trace."""
READ = frozenset({"api-resources", "auth", "describe", "get"})
UPGRADES = {"-i", "--install", "--reset-then-reuse-values", "--reset-values", "--reuse-values"}
"""Flags that `helm template` has not."""
ABSENT = re.compile(
    r"\(NotFound\)|not found|no matches for|no resources found|"
    r"resource type \"gpu(?:s|pods?|workloads)\"",
    re.IGNORECASE,
)
"""What kubectl says where a document is about things that the stage does not have."""
METRICS = re.compile(r"/apis/(?:custom|external)\.metrics\.k8s\.io/v\w+/namespaces/([\w-]+)/.+")


def of(program: str) -> list[tuple[Page, Command]]:
    return [(page, command) for page, command in COMMANDS if command.program == program]


def every(found: Sequence[tuple[Page, Command]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("page", "command"), found, ids=[command.place for _, command in found]
    )


def kubectl(*arguments: str, content: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs.find(programs.KUBECTL), *arguments],
        input=content,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def parsed(done: subprocess.CompletedProcess[str]) -> None:
    """A whole command was understood: its own help is what came, not that of a group, which
    does not reject unknown commands."""
    assert done.returncode == 0, done.stderr
    assert "Available Commands:" not in done.stdout or "Usage:\n  kubectl apply (-f" in done.stdout


@pytest.fixture(scope="module")
def defined(running_stage: Stage) -> Stage:
    """The stage, with other projects' kinds."""
    crds.install(running_stage.admin, *DEFINED)
    return running_stage


@pytest.mark.parametrize("place", sorted({place.partition(":")[0] for place, _ in manifests()}))
def test_the_api_server_accepts_every_manifest(defined: Stage, place: str) -> None:
    """Server-side and strictly, as kubectl sends it."""
    objects = [obj for where, obj in manifests() if where.partition(":")[0] == place]
    for obj in objects:
        ensure_namespace(defined.admin, obj["metadata"].get("namespace", "default"))
        if obj["kind"] == "Namespace":
            ensure_namespace(defined.admin, obj["metadata"]["name"])
    done = kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        "--force-conflicts",
        f"--kubeconfig={defined.plane.kubeconfig}",
        content=yaml.safe_dump_all(objects),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("serverside-applied") == len(objects)


def test_an_unknown_field_would_be_noticed(defined: Stage) -> None:
    wrong = next(obj for _, obj in manifests() if obj["kind"] == "ScaledObject")
    wrong = wrong | {"spec": wrong["spec"] | {"maxReplicas": 3}}
    ensure_namespace(defined.admin, wrong["metadata"].get("namespace", "default"))
    done = kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        f"--kubeconfig={defined.plane.kubeconfig}",
        content=yaml.safe_dump(wrong),
    )
    assert done.returncode != 0
    assert ".spec.maxReplicas: field not declared in schema" in done.stderr


@pytest.mark.parametrize(
    "block",
    [block for block in blocks("yaml") if kind(block) is Kind.VALUES],
    ids=lambda block: block.place,
)
def test_the_chart_accepts_every_values_file(block: Any) -> None:
    assert chart.render(yaml.safe_load(block.text) or {})


@every(of("helm"))
def test_helm_accepts_the_command(page: Page, command: Command, tmp_path: Path) -> None:
    """Its flags are helm's, and the chart renders with exactly them."""
    parsed(chart.helm(*command.arguments, "--help"))
    verb, *rest = command.arguments
    if verb not in CHART or OURS not in rest:
        assert gap(command)
        return
    words = [word for word in rest if word not in UPGRADES]
    for index, word in enumerate(words):
        if word in ("-f", "--values"):
            words[index + 1] = str(_values(page, command, words[index + 1], tmp_path))
        if word == OURS:
            words[index] = str(chart.FOLDER)
    done = chart.helm("template", *words)
    assert done.returncode == 0, done.stderr


def _values(page: Page, command: Command, name: str, folder: Path) -> Path:
    """The file that the page asks the reader to write, or one of this repository."""
    if (ROOT / name).exists():
        return ROOT / name
    before = [
        block
        for block in page.blocks
        if block.line < command.line and block.language == "yaml" and kind(block) is Kind.VALUES
    ]
    assert before, f"{command.place}: no `# values.yaml` block comes before --values {name}"
    file = folder / "values.yaml"
    file.write_text(before[-1].text)
    return file


@every(of("kubectl"))
def test_kubectl_accepts_the_command(defined: Stage, page: Page, command: Command) -> None:
    """Its flags are kubectl's; what reads is run, what writes is tried without a trace."""
    own, dashes, others = _split(command.arguments)
    parsed(kubectl(*own, "--help", *dashes, *others))
    words = [word for word in command.arguments if word not in ("-w", "--watch")]
    verb = next(word for word in words if not word.startswith("-"))
    if verb not in DRY | READ or "--raw" in words or any("ANSWER" in word for word in words):
        return
    dry = ["--dry-run=server"] if verb in DRY else []
    done = kubectl(*words, *dry, f"--kubeconfig={defined.plane.kubeconfig}")
    exists = "(AlreadyExists)" in done.stderr  # the stage's own namespace
    assert done.returncode == 0 or exists or ABSENT.search(done.stderr), done.stderr


def _split(arguments: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    """Return what is kubectl's own, ``--``, and what is a container's."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


RAW = [(page, one) for page, one in of("kubectl") if "--raw" in one.arguments]


@pytest.fixture(scope="module")
def loaded(running_stage: Stage) -> Iterator[Stage]:
    """The stage with the workload `inference` in every namespace that a query is about."""
    paths = (METRICS.fullmatch(_path(command)) for _, command in RAW)
    for namespace in {match[1] for match in paths if match}:
        running_stage.workload(namespace, replicas=1, demand=50, high=1)
        wait_until(partial(_values_of, running_stage, namespace), f"{namespace} has values")
    yield running_stage
    running_stage.clear()


@every(RAW)
def test_a_query_is_answered_with_values(loaded: Stage, page: Page, command: Command) -> None:
    valued = METRICS.fullmatch(_path(command))
    output = ""

    def answered() -> bool:
        nonlocal output
        done = kubectl(*command.arguments, f"--kubeconfig={loaded.plane.kubeconfig}")
        output = done.stdout + done.stderr
        return done.returncode == 0 and bool(not valued or json.loads(done.stdout)["items"])

    try:
        wait_until(answered, command.place)
    except FailedError as error:
        raise FailedError(f"{error}: {output}") from None


def _path(command: Command) -> str:
    words = command.arguments
    return words[words.index("--raw") + 1].partition("?")[0]


def _values_of(stage: Stage, namespace: str) -> dict[str, str]:
    try:
        return stage.values(namespace, "gpu_utilization")
    except RefusedError:
        return {}
