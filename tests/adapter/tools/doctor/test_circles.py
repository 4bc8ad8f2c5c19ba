"""No fix leads in a circle: what it names has another cause, or a change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.reasons import REASONS, changed_object, explanation, lasting_fix
from adapter.pipeline.cluster.pod import Owner
from adapter.tools.doctor.facts import Fact, Facts
from adapter.tools.doctor.model import Finding, registered_checks
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.valuelesspods import WithoutValue
from tests.adapter.tools.doctor.clean import clean
from tests.adapter.tools.doctor.faults.every import FAULTS, OF_OTHERS
from tests.adapter.world import make_pod

ROOT = Path(__file__).parents[4]
EXPLAINED = ROOT / "tests" / "adapter" / "tools" / "explain" / "texts"
OURS = re.compile(r"gpu-metrics-adapter (\w+)(?: (\w+))?([^`\n]*)")
ID = re.compile(r"GMA\d{3}")
IDS = {check.id for check in registered_checks()}
HPA = "explain hpa"
Graph = dict[str, set[str]]


def hint_of(reason: str) -> WithoutValue:
    """What the view API shows of a pod, as far as all names are known."""
    exporter = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    pod = make_pod(
        "llm-1", namespace="chat", node="n1", owner=Owner("apps/v1", "StatefulSet", "llm")
    )
    absence = Absence(reason, exporter=exporter.ref)
    why = explanation(absence, pod, {exporter.ref: exporter}.get)
    return WithoutValue("chat/llm-1", reason, why.message, why.hint, why.then, why.changes)


def lines_of(reason: str) -> Iterator[str]:
    """What `explain pod` prints as the fix of a reason."""
    shown = hint_of(reason)
    if shown.changes:
        fix = lasting_fix(reason, changed_object(shown.changes))
        assert fix is not None
        yield fix.line
    else:
        yield shown.hint
    yield shown.then


def leads(text: str, reasons: Iterator[str] | list[str]) -> Iterator[str]:
    """Yield what the commands of a text lead to; a bare doctor leads to every check."""
    for command, kind, rest in OURS.findall(text):
        if command == "doctor":
            ids = ID.findall(kind + rest)
            yield from ids or ([] if "--explain" in rest + kind else IDS)
        elif (command, kind) == ("explain", "hpa"):
            yield HPA
        elif command == "explain":
            yield from reasons


def findings() -> Iterator[tuple[str, Finding]]:
    """Every finding of every fault, with the check."""
    for identity, changes in (*FAULTS.items(), *OF_OTHERS.items()):
        for change in changes:
            facts = clean()
            change(facts)
            yield from of_check(facts, identity)
    for reason in REASONS:
        facts = clean()
        facts.without_value = Fact([hint_of(reason)])
        yield from of_check(facts, "GMA706")


def of_check(facts: Facts, identity: str) -> Iterator[tuple[str, Finding]]:
    (result,) = run(facts, (identity,))
    for finding in result.findings:
        yield identity, finding


@pytest.fixture(scope="module")
def graph() -> Graph:
    """What a command prints -> what its fixes lead to."""
    successors: Graph = {HPA: set(REASONS)}
    for reason in REASONS:
        for line in lines_of(reason):
            successors.setdefault(reason, set()).update(leads(line, [reason]))
    for path in EXPLAINED.glob("*.txt"):
        for line in re.findall("fix: (.*)", path.read_text(encoding="utf-8")):
            successors[HPA].update(leads(line, []))
    for identity, finding in findings():
        match = re.search(r"has no value[^:]*: (\w+):", finding.message)
        reasons = [match[1]] if match else list(REASONS)
        text = f"{finding.command}\n{finding.fix}"
        edges = set(leads(text, reasons)) | set(ID.findall(finding.fix))
        successors.setdefault(identity, set()).update(edges - {identity})
    return successors


def test_every_check_and_reason_that_a_fix_names_exists(graph: Graph) -> None:
    named = set().union(*graph.values())
    assert named <= IDS | set(REASONS) | {HPA}


def test_no_fix_leads_in_a_circle(graph: Graph) -> None:
    assert list(TopologicalSorter(graph).static_order())


def test_a_circle_would_be_seen() -> None:
    assert set(leads("gpu-metrics-adapter doctor", [])) == IDS
    assert set(leads("gpu-metrics-adapter doctor # GMA101", [])) == {"GMA101"}
    assert set(leads("run `gpu-metrics-adapter explain pod x -n y` for more", ["stale"])) == {
        "stale"
    }


@pytest.mark.parametrize("reason", REASONS)
def test_the_finding_for_a_reason_does_not_repeat_its_own_command(reason: str) -> None:
    facts = clean()
    facts.without_value = Fact([hint_of(reason)])
    for _, finding in of_check(facts, "GMA706"):
        again = OURS.search(finding.command)
        if again is not None and again[1] == "explain":
            # `explain pod` then has words to follow, and no further command of this kind.
            assert not any(OURS.search(line) for line in lines_of(reason))
