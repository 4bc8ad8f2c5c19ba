"""The page of faults has a row for each fault that the tests bring about, and no other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import pytest

from tests.e2e.programs import ROOT

PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("- **")]
_S, _P = "test_faults_store.py::", "test_faults_process.py::"
_PAGE, _PROCESS = "test_faults_pages.py::test_a_page_that", f"{_P}test_a_process_whose"
_CLUSTER, _REPLICA = (
    "test_faults_cluster.py::test_while_the",
    "test_faults_replicas.py::test_a_replica",
)
_STORE = f"{_S}test_prometheus_hangs_and_is_killed_for_an_adapter_whose_clock_is"
_JOB = "test_main_job.py::test_without_values_the_hpa_keeps_its_replicas"
SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "The page hangs, arrives": (
        *(f"{_PAGE}[hangs]", f"{_PAGE}[drips]", f"{_PAGE}[is-cut]"),
        *(f"{_PAGE}[never-ends]", f"{_PAGE}[is-refused]"),
    ),
    "All of these at once": (
        "test_faults_pages.py::test_pods_of_other_nodes_are_not_affected",
        "test_faults_pages.py::test_no_served_value_was_wrong",
    ),
    "Status 500": tuple(f"{_JOB}[{page}]" for page in ("broken", "empty", "garbage", "sentinel")),
    "Prometheus hangs": (f"{_STORE}[right]",),
    "The same, with": (f"{_STORE}[behind]",),
    "The adapter's clock is ahead": (
        f"{_STORE}[ahead]",
        f"{_S}test_a_clock_far_ahead_of_prometheus_makes_all_values_stale_and_is_logged",
    ),
    "Its process is paused": (f"{_PROCESS}[stands-still]",),
    "Its clock steps": (f"{_PROCESS}[clock-steps]",),
    "Its disk is full": (
        f"{_PROCESS}[disk-full]",
        f"{_P}test_a_full_disk_for_the_certificate_ends_the_process_with_a_message",
    ),
    "Its log": (f"{_PROCESS}[log-full]", f"{_PROCESS}[log-not-read]"),
    "It has reached its limit of open files": (f"{_PROCESS}[no-files]",),
    "1,500 unknown clients": (
        f"{_CLUSTER}[strangers-hold-connections]",
        "../attack/test_connections.py",
    ),
    "etcd hangs": (f"{_CLUSTER}[etcd-hangs]", f"{_CLUSTER}[etcd-is-slow]"),
    "kube-apiserver is killed": (
        f"{_CLUSTER}[api-server-is-killed]",
        "test_faults_cluster.py::test_no_client_got_a_wrong_value_and_nothing_was_scaled",
        "test_outages.py::test_the_api_server_restarts",
        "test_outages.py::test_values_are_served_while_the_api_server_is_unavailable",
    ),
    "The API server's certificate or CA": (
        *(f"{_CLUSTER}[certificate-rotates]", f"{_CLUSTER}[ca-rotates]"),
        "test_access.py::test_the_front_proxy_ca_rotates",
    ),
    "Both replicas are replaced": (
        "test_install.py::test_an_upgrade_and_a_rollback_answer_every_request",
        f"{_REPLICA}[is-evicted]",
        f"{_REPLICA}[is-rolled]",
    ),
    "One is killed": (f"{_REPLICA}[is-killed]",),
    "One is paused": (f"{_REPLICA}[stands-still]",),
    "The CronJob renews": (
        *(f"{_REPLICA}[gets-another-certificate]", f"{_REPLICA}[gets-another-ca]"),
        "test_faults_replicas.py::test_no_client_got_a_wrong_value_and_nothing_was_scaled",
    ),
    "The only one is killed": ("test_outages.py::test_the_adapter_recovers_after_a_kill",),
    "The adapter is unavailable": (
        "test_keda.py::test_replicas_do_not_change_while_the_adapter_is_stopped",
    ),
    "The stream of": ("test_keda.py::test_a_reopened_stream_still_starts_a_workload",),
    "Exporters fail": ("test_keda.py::test_the_fallback_applies_while_readings_are_missing",),
    "The only controller": ("test_nodepool.py::test_headroom_of_a_dead_controller_is_deleted",),
    "The leader of two": (
        "test_nodepool.py::test_one_of_two_controllers_acts_and_the_other_takes_over",
    ),
    "The API server becomes": (
        "test_nodepool.py::test_an_outage_of_the_api_server_changes_no_headroom",
    ),
    "The controller restarts": ("test_nodepool.py::test_a_restart_keeps_the_history",),
}
"""Beginning of a row -> the cases that bring its fault about."""
CASES = [case for cases in SHOWN.values() for case in cases]


@pytest.fixture(scope="module")
def cases() -> frozenset[str]:
    """Every case of the test files that show a row, and of those that are about faults."""
    folder = ROOT / "tests" / "e2e"
    files = {folder / name.partition("::")[0] for name in CASES if "::" in name}
    files |= set(folder.glob("test_faults_*.py"))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(map(str, files))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if "::" in line]
    return frozenset(line.removeprefix("tests/e2e/") for line in lines)


@pytest.mark.parametrize("row", ROWS)
def test_every_row_is_shown(row: str) -> None:
    assert [start for start in SHOWN if row.startswith(f"- **{start}")]


@pytest.mark.parametrize("start", SHOWN)
def test_what_is_shown_is_a_row(start: str) -> None:
    assert len([row for row in ROWS if row.startswith(f"- **{start}")]) == 1


def test_every_case_exists(cases: frozenset[str]) -> None:
    assert {case for case in CASES if "::" in case} - cases == set()
    assert (ROOT / "tests" / "attack" / "test_connections.py").exists()


def test_every_fault_that_is_brought_about_has_its_row(cases: frozenset[str]) -> None:
    assert {case for case in cases if case.startswith("test_faults_")} - set(CASES) == set()


def test_no_case_is_shown_twice() -> None:
    assert sorted(CASES) == sorted(set(CASES))
