"""What `doctor` prints, of which checks, of which namespace, and when it ends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapter.config.process.output import Screen
from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.model import CheckSection, Finding, Severity, registered_checks
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.results import Outcome, Result
from adapter.tools.doctor.runner import run, within
from tests.adapter.clientapi import ApiServer, api_server, forbidden
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.doctor.clean import clean
from tests.adapter.tools.doctor.faults.every import FAULTS
from tests.adapter.tools.doctor.test_collect import LISTS, small

CHECKS = {check.id: check for check in registered_checks()}
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
ELSEWHERE = Finding("hpa lab/b", "m", "f")
FRONT_PROXY = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
HERE = "/apis/autoscaling/v2/namespaces/chat/horizontalpodautoscalers"


def found(identity: str, *findings: Finding) -> Result:
    return Result(CHECKS[identity], Outcome.FOUND if findings else Outcome.FINE, findings)


def found_by(facts: Any, identity: str) -> tuple[Finding, ...]:
    (result,) = run(facts, {identity})
    return result.findings


def lines(*results: Result, quiet: bool = True) -> list[str]:
    return DoctorReport(list(results), "server s", quiet=quiet).lines(Screen())


def doctor(lab: tuple[ApiServer, Path], *arguments: str) -> Ended:
    return invoke("doctor", *arguments, "--kubeconfig", str(lab[1]))


def test_checks_without_a_finding_are_one_line_for_a_section() -> None:
    facts = clean()
    FAULTS["GMA008"][0](facts)
    results = run(facts)
    report = DoctorReport(results, "server s").lines(Screen())
    assert len(report) < 20
    fine = [result for result in results if result.outcome is Outcome.FINE]
    counted = sum(
        int(line.split()[-4 if "other" in line else -3]) for line in report if " fine" in line[-5:]
    )
    assert counted == len(fine)
    every = DoctorReport(results, "server s", verbose=True).lines(Screen())
    assert all(any(f" {result.check.id} " in line for line in every) for result in fine)


def test_quiet_prints_findings_alone_and_nothing_if_all_is_fine() -> None:
    fine, bad = found("GMA001"), found("GMA012", Finding("node n1", "has none", "look"))
    assert lines(fine) == []
    assert lines(fine, bad) == [
        "causes",
        "\N{MULTIPLICATION SIGN} GMA012 expected: nodes offer GPUs",
        "    node n1: has none",
        "      fix: look",
    ]


def test_findings_with_one_cause_are_one_line() -> None:
    many = [
        Finding(
            f"hpa chat/svc-{n}",
            f"chat/svc-{n} has no value: n3 is down",
            "restart",
            f"k {n}",
        )
        for n in range(30)
    ]
    other = Finding("hpa chat/x", "the target is 5 %", "raise it")
    shown = lines(found("GMA401", *many, other))
    assert shown[2:] == [
        "    30 HPAs (chat/svc-0, chat/svc-1, chat/svc-2 and 27 more): … has no value: n3 is down",
        "      fix of hpa chat/svc-0: restart",
        "      $ k 0",
        "    hpa chat/x: the target is 5 %",
        "      fix: raise it",
    ]
    rows = DoctorReport([found("GMA401", *many, other)], "s").json()["checks"][0]["findings"]
    assert len(rows) == 31


def test_a_namespace_leaves_out_findings_about_users_objects_of_others() -> None:
    here, foreign = Finding("hpa chat/a", "m", "f"), Finding("hpa lab/b", "m", "f")
    node, pod = Finding("node n1", "m", "f"), Finding("pod gpu-operator/dcgm-1", "m", "f")
    results = [found("GMA401", here, foreign), found("GMA404", foreign), found("GMA103", node, pod)]
    (hpas, gone, exporters), others = within(results, "chat")
    assert (hpas.findings, gone.findings, gone.outcome, others) == ((here,), (), Outcome.FINE, 2)
    assert exporters.findings == (node, pod)
    both = foreign._replace(concerns=("hpa chat/a",))
    ((shared,), none) = within([found("GMA404", both)], "chat")
    assert (shared.findings, none) == ((both,), 0)


def test_only_names_checks_and_sections(tmp_path: Path) -> None:
    with api_server(tmp_path) as lab:
        small(lab[0])
        ended = doctor(lab, "--only", "gma001", "--only", "HPAs", "-o", "json")
        rows = json.loads(ended.output)["checks"]
        wrong = doctor(lab, "--only", "GMA0001")
        section = doctor(lab, "--only", "gpus")
    wanted = {check.id for check in registered_checks() if check.section is CheckSection.HPAS} | {
        "GMA001"
    }
    assert {row["id"] for row in rows} == wanted
    assert (wrong.code, "did you mean GMA001" in wrong.output) == (2, True)
    assert (section.code, "no check and no section" in section.output) == (2, True)


@pytest.mark.parametrize("section", [section.value.replace(" ", "-") for section in CheckSection])
def test_every_section_can_be_chosen(section: str, tmp_path: Path) -> None:
    with api_server(tmp_path) as lab:
        small(lab[0])
        rows = json.loads(doctor(lab, "--only", section, "-o", "json").output)["checks"]
    assert {row["section"].replace(" ", "-") for row in rows} == {section}


def test_a_user_of_one_namespace_checks_its_hpas(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        small(server)
        server.answers[HPAS] = forbidden(
            "bob", "list", "horizontalpodautoscalers", "autoscaling", ""
        )
        for path in LISTS:
            prefix, _, plural = path.rpartition("/")
            server.answers[f"{prefix}/namespaces/chat/{plural}"] = []
        rows = {
            row["id"]: row["status"]
            for row in json.loads(doctor((server, file), "-n", "chat", "-o", "json").output)[
                "checks"
            ]
        }
        every = json.loads(doctor((server, file), "-o", "json").output)["checks"]
    hpas = [check.id for check in registered_checks() if check.section is CheckSection.HPAS]
    assert "unknown" not in {rows[identity] for identity in hpas}
    assert "unknown" in {row["status"] for row in every if row["id"] in hpas}


def test_wait_looks_until_the_cluster_is_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    with api_server(tmp_path) as lab:
        small(lab[0])

        async def sleep(seconds: float) -> None:
            """No time passes; the API server comes back, and then the rights."""
            looks.append(seconds)
            lab[0].answers["/version"] = {"gitVersion": "v1.33.1" if len(looks) > 1 else ""}

        lab[0].answers["/version"] = (500, {})
        monkeypatch.setattr(asyncio, "sleep", sleep)
        ended = doctor(lab, "--wait", "1h", "--only", "GMA001")
        over = doctor(lab, "--wait", "1s", "--only", "GMA002", "-q")
    first, second, *_ = ended.output.splitlines()
    assert (ended.code, len(looks)) == (0, 2)
    assert first.partition(" more: ")[2].startswith("GET /version: 500")
    assert second.endswith("could not check GMA001")
    assert (over.code, "GMA002 expected" in over.output) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-v", "-q"), "-v and -q exclude each other"),
        (("-n", "a", "-A"), "-A and -n exclude each other"),
        (("--wait", "5m", "-f", "."), "--wait looks at a cluster again"),
    ],
)
def test_options_that_exclude_each_other(arguments: tuple[str, ...], text: str) -> None:
    ended = invoke("doctor", *arguments)
    assert (ended.code, text in ended.output) == (2, True)


def test_a_warning_alone_is_fine() -> None:
    warning = Finding("node n1", "m", "f", severity=Severity.WARNING)
    assert DoctorReport([found("GMA001", warning)], "s").status == 0
    facts: Any = clean()
    facts.pods = Fact(facts.pods.read())
    assert DoctorReport(run(facts), "s").status == 0


def test_a_check_that_could_not_be_made_is_not_green(tmp_path: Path) -> None:
    with api_server(tmp_path) as lab:
        small(lab[0])
        for path in (*LISTS, FRONT_PROXY):
            group = path.split("/")[2] if path.startswith("/apis/") else ""
            lab[0].answers[path] = forbidden("bob", "list", path.rpartition("/")[2], group, "")
        ended = doctor(lab, "-o", "json")
        able = doctor(lab, "--only", "GMA001")
    report = json.loads(ended.output)
    assert (report["summary"]["errors"], report["summary"]["fine"] > 0) == (0, True)
    assert (ended.code, report["status"], able.code) == (2, 2, 0)


def test_what_only_a_run_in_the_cluster_can_check_does_not_count_elsewhere() -> None:
    inside = Result(
        CHECKS["GMA711"], Outcome.UNKNOWN, why="for clients in the cluster", inside=True
    )
    report = DoctorReport([Result(CHECKS["GMA001"], Outcome.FINE), inside], "s")
    assert report.status == 0
    assert "1 could not be checked" in " ".join(report.lines(Screen()))


def test_one_check_is_in_the_singular() -> None:
    skipped = Result(CHECKS["GMA012"], Outcome.SKIPPED, why="no node")
    (line, _) = lines(found("GMA001"), skipped, quiet=False)[-2:]
    assert line == "1 check fine, 0 errors, 0 warnings, 1 does not apply; server s"


def test_a_namespace_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with api_server(tmp_path) as lab:
        small(lab[0])
        lab[0].answers["/api/v1/namespaces"] = [{"metadata": {"name": "chat"}}]
        ended = doctor(lab, "-n", "chta")
    assert ended.code == 2
    assert "namespace 'chta' does not exist: did you mean chat?" in ended.output


def test_a_command_is_named_only_where_it_is_printed() -> None:
    facts: Any = clean()
    FAULTS["GMA405"][0](facts)
    (live,) = found_by(facts, "GMA405")
    assert "(the command says " in live.fix
    facts.hpas = Fact([hpa._replace(origin="hpa.yaml") for hpa in facts.hpas.read()])
    (file,) = found_by(facts, "GMA405")
    assert (file.command, "the command says" in file.fix) == ("", False)


def test_a_check_made_in_part_is_not_green() -> None:
    warning = Finding("node n1", "m", "f", severity=Severity.WARNING)
    part = replace(found("GMA001", warning), why="bob may not list pods")
    report = DoctorReport([part, found("GMA012")], "s")
    assert report.status == 2
    assert "1 could be checked only in part" in " ".join(report.lines(Screen()))
    ((left,), _) = within([replace(found("GMA401", ELSEWHERE), why="no right")], "chat")
    assert left.outcome is Outcome.UNKNOWN
