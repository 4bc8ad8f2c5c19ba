"""Every check: its fault is found, and a clean cluster is silent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from adapter.config.process.output import Screen
from adapter.pipeline.cluster.objects import ResourceQuota, read
from adapter.tools.doctor.facts import Fact, Facts, UnreadError
from adapter.tools.doctor.model import CheckSection, Severity, registered_checks
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.results import Outcome
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.valuelesspods import WithoutValue
from tests.adapter.tools.doctor.clean import (
    clean,
    clean_store,
    container,
    hpa,
    metric,
    pod,
    row,
    stored,
)
from tests.adapter.tools.doctor.faults.every import FAULTS, OF_OTHERS
from tests.adapter.tools.doctor.faults.register import Fault
from tests.adapter.tools.doctor.faults.servers import PENDING, TRITON, VLLM, page_of, server_pod

CHECKS = {check.id: check for check in registered_checks()}
COMMANDS = ("kubectl ", "echo ", "kubeadm ", "helm ", "gpu-metrics-adapter ", "date ")
CASES = [
    pytest.param(identity, change, id=f"{identity}-{change.__name__}")
    for identity, changes in (*FAULTS.items(), *OF_OTHERS.items())
    for change in changes
]


def test_every_check_has_a_fault() -> None:
    assert {*FAULTS, *OF_OTHERS} == set(CHECKS)


@pytest.mark.parametrize("world", [clean, clean_store])
def test_a_clean_cluster_is_silent(world: Callable[[], Facts]) -> None:
    results = run(world())
    assert {result.check.id: result.findings for result in results if result.findings} == {}
    assert {
        result.check.id: result.why for result in results if result.outcome is Outcome.UNKNOWN
    } == {}


def test_every_check_looks_at_one_of_the_clean_clusters() -> None:
    fine = {
        result.check.id
        for world in (clean, clean_store)
        for result in run(world())
        if result.outcome is Outcome.FINE
    }
    # Of a cluster's HPAs the API server has refused the invalid ones; no clean cluster has buffers
    # by force.
    assert fine == set(CHECKS) - {"GMA409", "GMA602"}


@pytest.mark.parametrize(("identity", "change"), CASES)
def test_a_fault_is_found_by_its_check_with_a_fix_and_a_command(
    identity: str, change: Fault
) -> None:
    facts = clean()
    change(facts)
    (result,) = run(facts, (identity,))
    assert result.outcome is Outcome.FOUND
    for finding in result.findings:
        assert finding.subject
        assert finding.fix
        assert len(finding.message.splitlines()) == 1
        # In files, the fix is an edit of the file.
        if not facts.offline:
            shlex.split(finding.command)
            assert finding.command.startswith(COMMANDS)


@pytest.mark.parametrize(("identity", "change"), CASES)
def test_a_report_has_lines_of_at_most_100_characters(identity: str, change: Fault) -> None:
    facts = clean()
    change(facts)
    report = DoctorReport(run(facts, (identity,)), "server https://api:6443 (kubeconfig ~/.kube)")
    lines = report.lines(Screen())
    long = [line for line in lines if len(line) > 100 and "'" not in line]
    assert long == []
    assert any(
        line.startswith(("\N{MULTIPLICATION SIGN}", "‼")) and identity in line for line in lines
    )


@pytest.mark.parametrize("each", CHECKS)
def test_a_check_is_documented(each: str) -> None:
    check = CHECKS[each]
    assert re.fullmatch(r"GMA\d{3}", check.id)
    assert int(check.id[3]) == list(CheckSection).index(check.section)
    assert not check.title.endswith(".")
    paragraphs = check.text.split("\n\n")
    assert len(paragraphs) >= 2, "what it means, and what to do"
    assert all(paragraph.endswith(".") for paragraph in paragraphs)


def test_a_missing_right_ends_only_the_checks_that_need_it() -> None:
    facts = clean()
    right = UnreadError("bob may not list pods in the whole cluster", "kubectl create clusterrole")
    facts.pods = Fact(unread=right)
    facts.nodes = Fact(unread=right)
    results = {result.check.id: result for result in run(facts)}
    assert results["GMA001"].outcome is Outcome.FINE
    assert results["GMA401"].outcome is Outcome.FINE
    unknown = results["GMA422"]
    assert unknown.outcome is Outcome.UNKNOWN
    report = DoctorReport(list(results.values()), "server")
    text = "\n".join(report.lines(Screen()))
    assert "could not check: bob may not list pods in the whole cluster" in text
    assert text.count("$ kubectl create clusterrole") == 1
    assert text.count("bob may not list pods") == 1
    (line,) = [line for line in text.splitlines() if "checks, for one reason" in line]
    unknown_ids = [key for key, result in results.items() if result.outcome is Outcome.UNKNOWN]
    assert f"{len(unknown_ids)} checks" in line
    assert all(text.count(key) == 1 for key in unknown_ids)


def test_a_quota_that_is_not_counted_yet_is_not_used_up() -> None:
    facts = clean()
    manifest = {
        "metadata": {"name": "new", "namespace": "gpu-metrics"},
        "spec": {"hard": {"pods": "0"}},
    }
    facts.quotas = Fact([read(manifest, ResourceQuota)])
    (result,) = run(facts, ("GMA604",))
    assert result.outcome is Outcome.FINE


def test_a_quota_in_numbers_is_read() -> None:
    manifest = {
        "metadata": {"name": "new", "namespace": "gpu-metrics"},
        "spec": {"hard": {"requests.cpu": 0.5, "pods": 0}},
        "status": {"used": {"pods": 0, "requests.cpu": 0.25}},
    }
    facts = clean()
    facts.quotas = Fact([read(manifest, ResourceQuota)])
    (result,) = run(facts, ("GMA604",))
    assert [finding.message for finding in result.findings] == ["pods is used up: 0 of 0"]


def test_a_target_in_another_unit_silences_the_advice_to_raise_the_maximum() -> None:
    facts = clean()
    row = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    status = {"conditions": [row]}
    facts.hpas = Fact([hpa(metric(average="700m"), status=status)])
    unit, maximum = run(facts, ("GMA404", "GMA411"))
    assert [finding.subject for finding in unit.findings] == ["hpa chat/llm"]
    assert maximum.outcome is Outcome.SKIPPED
    right = hpa(metric(), name="right", status=status)
    facts.hpas = Fact([*facts.hpas.read(), right])
    (maximum,) = run(facts, ("GMA411",))
    assert [finding.subject for finding in maximum.findings] == ["hpa chat/right"]


def test_an_hpa_at_its_maximum_that_wants_no_more_has_no_finding() -> None:
    facts = clean()
    row = {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"}
    full = {"currentReplicas": 8, "desiredReplicas": 8, "conditions": [row]}
    facts.hpas = Fact([hpa(metric(), maxReplicas=8, status=full)])
    (maximum,) = run(facts, ("GMA411",))
    assert maximum.outcome is Outcome.FINE
    assert maximum.check.title == "HPAs want no more than their maximum"


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ([18080], ""),
        ([8000, 9000], 'port":"8000"'),
        ([7000, 9000], 'port":"9000"'),
        ([], 'port":"8000"'),
    ],
    ids=["the only port", "the server's usual port", "the port named http", "no port"],
)
def test_a_server_opts_in_at_a_port_that_it_declares(ports: list[int], said: str) -> None:
    facts = clean()
    given = [
        {"name": "http" if port == 9000 else f"p{port}", "containerPort": port} for port in ports
    ]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "vllm", "controller": True}
    server = pod("vllm-1", containers=[container(VLLM, ports=given)], owners=[owner | {"uid": "u"}])
    facts.pods = Fact([*facts.pods.read(), server])
    ((finding,),) = (result.findings for result in run(facts, ("GMA501",)))
    assert 'scrape":"true"' in finding.command
    assert (said in finding.command) if said else ("port" not in finding.command)


def test_with_a_store_no_server_is_asked_to_opt_in() -> None:
    facts = clean_store()
    facts.pods = Fact([*facts.pods.read(), pod("vllm-1", containers=[container(VLLM)])])
    (result,) = run(facts, ("GMA501",))
    assert result.outcome is Outcome.SKIPPED
    assert result.why == "source.kind is prometheus: scrape jobs elsewhere read the servers' pages"


def test_series_name_pods_in_any_spelling() -> None:
    facts = clean_store()
    labels = {"k8s_pod_name": "llm-1", "k8s_namespace_name": "chat"}
    facts.store = Fact(stored([row("gpu-b", namespace="", pod="", **labels)]))
    (result,) = run(facts, ("GMA305",))
    assert not result.findings


def test_a_port_that_the_server_does_not_declare_is_a_warning_if_its_page_was_not_read() -> None:
    facts = clean()
    server = server_pod(VLLM, scrape="true", port="18080")
    facts.pods = Fact([*facts.pods.read(), server])
    facts.server_pages = Fact(unread=UnreadError("bob may not get pods/proxy"))
    (result,) = run(facts, ("GMA502",))
    (finding,) = result.findings
    assert finding.severity is Severity.WARNING
    assert "18080, which is none of the ports that it declares" in finding.message
    assert "port=8000" in finding.command
    assert result.why == "bob may not get pods/proxy"


def test_pods_without_a_value_are_grouped_by_reason_with_one_example_and_its_fix() -> None:
    facts = clean()
    names = ("llm-1", "llm-2", "gone")
    pods = [WithoutValue(f"chat/{name}", "exporter_down", "it is down", "") for name in names]
    facts.without_value = Fact(pods)
    facts.measured = Fact({"chat": frozenset()})
    (result,) = run(facts, ("GMA706",))
    (finding,) = result.findings
    assert finding.subject == "pod chat/llm-1"
    assert finding.message == (
        "has no value, and 1 more for this reason: exporter_down: it is down"
    )
    assert finding.command == "gpu-metrics-adapter explain pod llm-1 -n chat"


def test_without_the_view_api_the_values_of_the_metrics_api_are_checked() -> None:
    facts = clean()
    facts.without_value = Fact(unread=UnreadError("the cluster does not serve it", status=404))
    facts.measured = Fact({"chat": frozenset({"llm-2"})})
    (result,) = run(facts, ("GMA706",))
    assert [finding.subject for finding in result.findings] == ["namespace chat"]


@pytest.mark.parametrize(
    ("series", "ids"),
    [
        ([row("gpu-a")], {"GMA303"}),
        ([row("gpu-a", namespace="", pod="", Hostname="gpu-a")], {"GMA303"}),
        ([row("gpu-b")], {"GMA303", "GMA305"}),
        ([row("gpu-b", namespace="", pod="", Hostname="gpu-b")], {"GMA303", "GMA305"}),
    ],
    ids=["exporter without pods", "its host", "exporter of the pod", "host of the pod"],
)
def test_series_need_not_name_the_pods_of_a_node_that_prometheus_does_not_scrape(
    series: list[dict[str, str]], ids: set[str]
) -> None:
    facts = clean_store()
    pods = [other for other in facts.pods.read() if other.key != "chat/llm-1"]
    facts.pods, facts.store = Fact(pods), Fact(stored(series))
    results = run(facts, ("GMA302", "GMA303", "GMA305"))
    assert {result.check.id for result in results if result.findings} == ids


@pytest.mark.parametrize(
    ("image", "page"),
    [
        (VLLM, b'vllm:num_requests_waiting{engine="0"} 0\nvllm:prompt_tokens_total 9\n'),
        (TRITON, PENDING + b'vllm:num_requests_waiting{model="m",version="1"} 0\n'),
        ("nvcr.io/nvidia/tritonserver:25.08-py3", PENDING),
    ],
)
def test_a_page_with_a_queue_that_its_server_shows_is_fine(image: str, page: bytes) -> None:
    facts = clean()
    page_of(facts, image, page)
    assert not [result for result in run(facts) if result.check.id == "GMA504" and result.findings]
