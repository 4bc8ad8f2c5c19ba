"""Every command on every failure of its environment: one line that names the fix, no traceback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from adapter.__main__ import main
from adapter.nodepool import process
from tests.adapter.failingapi import ANSWERS, KUBECONFIGS, UNREACHED, WELL, Failing, failing

COMMON: Final = ("--namespace", "ns", "--service", "s", "--wait", "0", "--apiservice", "v1.x")
ONE_SHOT: Final = {
    "nodepool --once": ("nodepool", "--once"),
    "maintain certificates": (
        *("maintain", "certificates", "--secret", "a", "--ca-secret", "b"),
        *COMMON,
    ),
    "maintain unregister": ("maintain", "unregister", *COMMON),
}
RUNNING: Final = {
    "serve": (("serve", "--port", "0", "--log-level", "debug"), 4),
    "nodepool": (("nodepool", "--log-level", "debug"), 2),
    "nodepool --apply": (("nodepool", "--apply", "--log-level", "debug"), 2),
    "demo --exporter": (("demo", "--exporter", "n1", "--port", "0"), 1),
}
"""What keeps running, and how many of its parts report an API server that fails."""
FIX: Final = {
    "401": "log in again",
    "403": "RBAC",
    "404": "Kubernetes API server is at this address",
    "500": "API server's own log",
    "html": "proxy or login page",
    "silent": "this machine reaches it",
    "refused": "this machine reaches it",
    "expired": "renew the API server's certificate",
    "untrusted": "set certificate-authority",
}


class Ended(NamedTuple):
    """How a command ended, and all that it wrote."""

    code: object
    output: str

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The warnings and errors of its log."""
        rows = [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]
        return [row for row in rows if row["level"] in ("warning", "error")]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("GMA_", "KUBE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GMA_SERVER__CERT_DIR", str(tmp_path / "certificates"))
    monkeypatch.setenv("GMA_NODEPOOL__PORT", "0")
    monkeypatch.setenv("GMA_NODEPOOL__HOST", "127.0.0.1")
    monkeypatch.setattr(process, "_CALL", 1.0)
    return tmp_path


def invoke(arguments: tuple[str, ...], until: Callable[[str], bool] | None = None) -> Ended:
    """Run a command in this process; with ``until``, SIGTERM ends it once that holds."""
    written, ended = io.StringIO(), threading.Event()

    def stop(holds: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + 60
        while not ended.wait(0.02) and time.monotonic() < deadline:
            if holds(written.getvalue()):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=stop, args=(until,)) if until else None
    code: object = 0
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        if thread:
            thread.start()
        try:
            main(arguments)
        except SystemExit as error:
            code = error.code
        finally:
            ended.set()
            if thread:
                thread.join()
    return Ended(code, written.getvalue())


def target(found: Failing) -> tuple[str, ...]:
    return ("--kubeconfig", str(found.kubeconfig), "--context", found.context)


@pytest.fixture(params=[*ANSWERS, *UNREACHED])
def broken(request: pytest.FixtureRequest, environment: Path) -> Iterator[tuple[str, Failing]]:
    """A server that fails, by the failure's name."""
    with failing(request.param, environment) as found:
        yield request.param, found


@pytest.mark.parametrize("command", ONE_SHOT)
def test_a_command_that_ends_says_in_one_line_what_failed_where_and_how_to_fix_it(
    command: str, broken: tuple[str, Failing]
) -> None:
    failure, found = broken
    if (command, failure) in ALREADY_GONE:
        pytest.skip("an APIService that is not there is what the command is to make true")
    ended = invoke((*ONE_SHOT[command], *target(found)))
    assert ended.code == 1
    (line,) = ended.output.splitlines()
    assert line.startswith("gpu-metrics-adapter: ")
    if (command, failure) in OF_THE_CHART:
        assert "apply the chart again" in line
        return
    assert f"asked {found.server} (kubeconfig {found.kubeconfig}, context lab)" in line
    if not command.startswith("maintain") or failure in UNREACHED:
        assert FIX[failure] in line


ALREADY_GONE: Final = {("maintain unregister", "404")}
OF_THE_CHART: Final = {("maintain certificates", "404")}


@pytest.mark.parametrize("failure", KUBECONFIGS)
@pytest.mark.parametrize("command", [*ONE_SHOT, *RUNNING])
def test_a_kubeconfig_that_cannot_be_used_is_one_line_that_names_it(
    command: str, failure: str, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing(failure, environment) as found:
        arguments = ONE_SHOT.get(command) or RUNNING[command][0]
        if command.startswith("demo"):
            if failure == "no-context":
                pytest.skip("it names no context")
            monkeypatch.setenv("KUBECONFIG", str(found.kubeconfig))
        else:
            arguments = (*arguments, *target(found))
        ended = invoke(arguments)
    assert ended.code == 1
    lines = [line for line in ended.output.splitlines() if not line.startswith("{")]
    (line,) = lines
    assert line.startswith("gpu-metrics-adapter: ")
    assert str(found.kubeconfig) in line
    assert ended.problems == []


@pytest.mark.parametrize("command", RUNNING)
def test_a_command_that_keeps_running_warns_once_of_an_api_server_that_fails(
    command: str, broken: tuple[str, Failing], monkeypatch: pytest.MonkeyPatch
) -> None:
    failure, found = broken
    if failure == "silent" and not command.startswith("nodepool"):
        pytest.skip("it waits for a minute")
    arguments, parts = RUNNING[command]
    if command.startswith("demo"):
        monkeypatch.setenv("KUBECONFIG", str(found.kubeconfig))
    else:
        arguments = (*arguments, *target(found))

    def said(output: str) -> bool:
        return sum(output.count(f'"event": "{event}"') for event in FAILED) >= parts

    ended = invoke(arguments, until=said)
    assert "Traceback" not in ended.output
    assert ended.code == 0
    (warning,) = ended.problems
    assert failure in json.dumps(warning) or failure in ("html", "silent", *UNREACHED)


@pytest.mark.parametrize(("command", "last"), [("serve", "request-header"), ("nodepool", "way")])
def test_a_normal_start_and_end_logs_no_warning(command: str, last: str, environment: Path) -> None:
    with failing(WELL, environment) as found:
        arguments = (*RUNNING[command][0], *target(found))
        ended = invoke(arguments, until=lambda output: f'"event": "{last}' in output)
    assert ended.code == 0
    assert f'"event": "{last}' in ended.output
    assert ended.problems == []


FAILED: Final = (
    "watch failed",
    "nothing is planned, headroom stays as it is",
    "the API server does not say what it serves",
    "lease not renewed",
    "the page stays as it was",
)
"""What a part logs when its request failed; the first at warning, the others below."""
