"""Faults of real clusters: `explain` and `doctor` lead to the cause, and to a fix that runs.

All faults stand on one stage at once. The control plane, the scheduler, the quota controller and
the admission plugins are real; what a kubelet would write into the status of a pod is set. With
``CAUSES=all``, as ``make e2e-causes`` sets it, the faults of :mod:`tests.e2e.otherfaults` and
:mod:`tests.e2e.templatefaults` stand there too, which takes three times as long.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e import causefaults  # noqa: F401 - registers the faults
from tests.e2e.apiservice import VIEW, ensure_namespace, register_group, wait_available
from tests.e2e.causestage import FAULTS, CauseStage, Printed, tried
from tests.e2e.process import FailedError, wait_until

if os.environ.get("CAUSES") == "all":
    import tests.e2e.otherfaults
    import tests.e2e.templatefaults  # noqa: F401 - both register faults

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PATIENCE = 150.0
"""Seconds in which every fault is old enough to be a cause."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CauseStage]:
    """The stage with all faults."""
    with CauseStage(tmp_path_factory.mktemp("causes")) as running:
        adapter = running.adapter
        register_group(running.admin, adapter.port, adapter.ca.read_bytes(), VIEW)
        wait_available(running.admin, VIEW)
        for name, fault in FAULTS.items():
            ensure_namespace(running.admin, name)
            fault.build(running, name)
        yield running


@pytest.fixture(scope="module")
def explained(stage: CauseStage) -> Mapping[str, Printed]:
    """What `explain hpa` says of each fault, once its words are there."""

    def told(name: str) -> Printed:
        last: list[Printed] = []

        def look() -> bool:
            last[:] = [stage.explain(name)]
            return all(part in last[0].line for part in FAULTS[name].words)

        # The test of the fault shows what it says instead.
        with contextlib.suppress(FailedError):
            wait_until(look, f"explain knows {name}", PATIENCE, every=10)
        return last[0]

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(FAULTS, pool.map(told, FAULTS), strict=True))


@pytest.fixture(scope="module")
def report(stage: CauseStage, explained: Mapping[str, Printed]) -> Any:
    """What `doctor` finds while all faults stand."""
    return json.loads(stage.command("doctor", "-o", "json").output)


@pytest.fixture(scope="module")
def listed(stage: CauseStage, explained: Mapping[str, Printed]) -> Any:
    """The HPAs of the list, which is what the page shows too."""
    printed = stage.command("top", "hpas", "-A", "--once", "-o", "json")
    return json.loads(printed.output)["rows"]


@pytest.mark.parametrize("name", FAULTS)
def test_explain_leads_to_the_cause(name: str, explained: Mapping[str, Printed]) -> None:
    printed = explained[name]
    missing = [part for part in FAULTS[name].words if part not in printed.line]
    assert missing == [], printed.output
    assert printed.code == 1
    assert printed.fixes, printed.output
    # What writes the object again is changed, not the object.
    if name in ("argo-target", "helm-target"):
        assert not any(" patch " in fix for fix in printed.fixes), printed.fixes


@pytest.mark.parametrize("name", FAULTS)
def test_every_printed_command_runs(
    name: str, explained: Mapping[str, Printed], stage: CauseStage
) -> None:
    for command in explained[name].fixes:
        if (done := tried(stage, command)) is None:
            continue
        # A look at a value that is missing ends with the adapter's reason, and its fix.
        explains = " --raw " in command and "; fix: " in done.stderr
        assert done.returncode == 0 or explains, f"{command}: {done.stderr}"


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name].check])
def test_doctor_leads_to_the_cause(name: str, report: Any) -> None:
    findings = {row["id"]: row.get("findings", []) for row in report["checks"]}
    own = [
        row
        for row in findings[FAULTS[name].check]
        if f"hpa {name}/inference" in f"{row['object']} {row['message']}"
    ]
    assert own, findings[FAULTS[name].check]
    assert all(row["fix"] for row in own)
    text = " ".join(f"{row['object']} {row['message']} {row['fix']}" for row in own)
    assert FAULTS[name].words[0].removeprefix("node ") in text.replace(": offers", " offers")


UNSEEN = {"two-workloads", "no-operator", "no-scaled-target"}
"""Faults that the list of HPAs cannot see: it reads no selectors of targets, and these
ScaledObjects have made no HPA. `explain` and `doctor` see them."""


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - UNSEEN))
def test_the_list_shows_no_fault_as_healthy(name: str, listed: Any) -> None:
    (row,) = [row for row in listed if row["namespace"] == name]
    assert row["level"] != "good", row["text"]


def test_a_metrics_server_that_does_not_answer_is_not_missing(stage: CauseStage) -> None:
    """After the tests above: the API is registered now, and its server is frozen: it takes
    connections and answers nothing."""
    name = "no-metrics-server"
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        dead = (("metrics.k8s.io", "v1beta1", 100),)
        port = frozen.getsockname()[1]
        register_group(stage.admin, port, stage.adapter.ca.read_bytes(), dead)
        wait_until(lambda: "does not answer" in stage.explain(name).line, "explain says so", 120, 5)
        line = stage.explain(name).line
    assert "which serves metrics.k8s.io, does not answer" in line
    assert "nothing serves" not in line
    assert "install metrics-server" not in line


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name].cured])
def test_the_printed_command_removes_the_cause(name: str, stage: CauseStage) -> None:
    printed = stage.explain(name)
    (command,) = [fix for fix in printed.fixes if " patch " in fix and "patch hpa" not in fix]
    done = stage.shell(command)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    # The ReplicaSet controller has a back-off of minutes by now; a change makes it look at once.
    stage.shell(f"kubectl -n {name} annotate replicasets --all looked=again")
    words = FAULTS[name].words[0]
    wait_until(lambda: words not in stage.explain(name).line, f"{name} is cured", 120, 5)


def test_a_controller_that_does_not_run(stage: CauseStage) -> None:
    """The last: nothing follows after the controllers have stopped."""
    namespace = "controller"
    ensure_namespace(stage.admin, namespace)
    stage.admin.create(stage.target(namespace))
    stage.plane.manager.stop(signal.SIGKILL)
    stage.admin.create(stage.scaled(namespace))
    words = "has not written a status since the HPA was created"
    wait_until(lambda: words in stage.explain(namespace).line, "explain says so", 120, 5)
    last_report = json.loads(stage.command("doctor", "-o", "json").output)
    (check,) = [row for row in last_report["checks"] if row["id"] == "GMA443"]
    assert "hpa controller/inference" in str(check["findings"])
