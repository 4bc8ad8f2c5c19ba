"""Every command on every failure of its environment: one line that names the fix, no traceback."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import click
import pytest

from adapter.__main__ import main
from adapter.tools.ui import run as page
from apiservice.kube import client
from apiservice.kube.clusterclient import ClusterClient
from tests.adapter.commandline import Ended, invoke
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
CLIENTS: Final = {
    "doctor": ("doctor",),
    "doctor -o json": ("doctor", "-o", "json"),
    "doctor --bundle": ("doctor", "--bundle", "/nonexistent/support.json"),
    "conformance": ("conformance", "llm", "--over", "0s"),
    "idle": ("idle",),
    "top": ("top", "--once"),
    "top pods": ("top", "pods", "-o", "json"),
    "idle -o csv": ("idle", "--by", "team", "-o", "csv"),
    "explain hpa": ("explain", "hpa", "llm"),
    "migrate prometheus-adapter": ("migrate", "prometheus-adapter"),
    "migrate -o values": ("migrate", "prometheus-adapter", "-o", "values"),
    "explain pod": ("explain", "pod", "llm-0"),
    "replay hpa": ("replay", "hpa", "llm", "--from", "."),
    "replay recommend": ("replay", "recommend", "--from", "."),
    "explain node": ("explain", "node", "n1", "-o", "json"),
    "explain gpu": ("explain", "gpu", "n1.gpu0"),
    "explain scaledobject": ("explain", "scaledobject", "llm"),
    "explain workload": ("explain", "workload", "deployment/llm"),
}
"""Tools of users, which end with 2 if they could not look."""
PAGE: Final = {"ui": ("ui", "--no-browser")}
"""The tool that keeps running, and shows on its page what it could not read."""
RECORDER: Final = {"replay record": ("replay", "record", "day.gma", "--for", "1s")}
"""The tool that keeps running for a while, and ends with what kept it from its work. Its file is in
the folder of the test."""
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
    "expired": "renew the server's certificate",
    "untrusted": "set certificate-authority",
}


ALONE: Final = {"completion", "costs", "generate hpa", "generate scaledobject", "version"}
"""They read nothing of a cluster; ``costs`` reads a Prometheus (tests/adapter/tools/idle)."""


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The commands that a command line can end with, from the parser itself."""
    if not isinstance(command, click.Group):
        yield path
        return
    for name, subcommand in command.commands.items():
        yield from leaves(subcommand, (*path, name))


def test_every_command_is_in_one_of_the_tables() -> None:
    tables = (ONE_SHOT, CLIENTS, PAGE, RECORDER, {key: row[0] for key, row in RUNNING.items()})
    given = [arguments for table in tables for arguments in table.values()]
    left = {
        " ".join(path)
        for path in leaves(main)
        if not any(arguments[: len(path)] == path for arguments in given)
    }
    assert left == ALONE


def test_every_program_is_the_same_command_line() -> None:
    """kubectl finds kubectl-gpu, so that `kubectl gpu` is covered too."""
    for name in ("kubectl-gpu", "gpu-metrics-adapter"):
        (script,) = entry_points(group="console_scripts", name=name)
        assert script.load() is main


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a response for a second, where none comes."""
    exchange = client._exchange

    def soon(
        at: ClusterClient, method: str, path: str, body: Any, seconds: float, kind: str, **more: Any
    ) -> Any:
        return exchange(at, method, path, body, min(seconds, 1.0), kind, **more)

    monkeypatch.setattr(client, "_exchange", soon)


def run(
    arguments: tuple[str, ...], found: Failing, until: Callable[[str], bool] | None = None
) -> Ended:
    """Run a command against an API server; the demo takes its kubeconfig from the environment."""
    folder = found.kubeconfig.parent
    arguments = tuple(str(folder / a) if a.endswith(".gma") else a for a in arguments)
    environ = {
        "HOME": str(folder),
        "GMA_SERVER__CERT_DIR": str(folder / "certificates"),
        "GMA_SERVER__DRAIN": "0",
        "GMA_SERVER__PROBE_PORT": "0",
        "GMA_KEDA__ENABLED": "false",  # gRPC's threads would stay in this process
        "GMA_NODEPOOL__PORT": "0",
        "GMA_NODEPOOL__HOST": "127.0.0.1",
    }
    if arguments[0] == "demo":
        environ["KUBECONFIG"] = str(found.kubeconfig)
    else:
        arguments += ("--kubeconfig", str(found.kubeconfig), "--context", found.context)
    return invoke(*arguments, until=until, terminal=False, **environ)


ALREADY_GONE: Final = {("maintain unregister", "404")}
"""What the command is to make true."""
OF_THE_CHART: Final = {("maintain certificates", "404")}


@pytest.fixture(params=[*ANSWERS, *UNREACHED])
def broken(request: pytest.FixtureRequest, environment: Path) -> Iterator[tuple[str, Failing]]:
    """A server that fails, by the failure's name."""
    if request.param == "silent":
        request.getfixturevalue("impatient")
    with failing(request.param, environment) as cluster:
        yield request.param, cluster


@pytest.mark.parametrize("command", ONE_SHOT)
def test_a_command_that_ends_says_in_one_line_what_failed_where_and_how_to_fix_it(
    command: str, broken: tuple[str, Failing]
) -> None:
    failure, cluster = broken
    ended = run(ONE_SHOT[command], cluster)
    if (command, failure) in ALREADY_GONE:
        assert (ended.code, ended.problems) == (0, [])
        return
    assert ended.code == (2 if command == "nodepool --once" else 1)
    (line,) = ended.output.splitlines()
    assert line.startswith("gpu-metrics-adapter: ")
    if (command, failure) in OF_THE_CHART:
        assert "apply the chart again" in line
        return
    assert f"server: {cluster.server} (kubeconfig {cluster.kubeconfig}, context lab)" in line
    if not command.startswith("maintain") or failure in UNREACHED:
        assert FIX[failure] in line


@pytest.mark.parametrize("command", CLIENTS)
def test_a_tool_of_users_says_in_one_line_what_failed_where_and_how_to_fix_it(
    command: str, broken: tuple[str, Failing]
) -> None:
    failure, cluster = broken
    ended = run(CLIENTS[command], cluster)
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert line.startswith("gpu-metrics-adapter: ")
    assert f"server: {cluster.server} (kubeconfig {cluster.kubeconfig}, context lab)" in line
    assert FIX[failure] in line


def test_a_recorder_ends_with_what_failed_and_how_to_fix_it(
    broken: tuple[str, Failing], environment: Path
) -> None:
    failure, cluster = broken
    ended = run(("replay", "record", str(environment / "day.gma"), "--for", "1s"), cluster)
    assert ended.code == 1
    line = ended.output.splitlines()[-1]
    assert line.startswith("gpu-metrics-adapter: nothing to replay: ")
    assert "GET /api/v1/pods: " in line or failure == "silent"
    assert line.endswith("; `gpu-metrics-adapter doctor` names the fix")


def test_the_page_starts_with_an_api_server_that_fails(
    broken: tuple[str, Failing],
) -> None:
    """Its panels show the failure; tests/adapter/tools/ui looks at them."""
    ended = run(PAGE["ui"], broken[1], until=lambda output: "Ctrl-C" in output)
    assert ended.code == 0
    address, key, end = (line for line in ended.output.splitlines() if line)
    assert broken[1].server in address
    assert "/?token=" in key
    assert end == "Ctrl-C ends it."


def test_the_page_ends_well_by_a_signal_as_soon_as_it_is_announced(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_announce", lambda *_: signal.raise_signal(signal.SIGTERM))
    with failing("refused", environment) as cluster:
        ended = run(PAGE["ui"], cluster)
    assert (ended.code, ended.output) == (0, "")


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (command, failure)
        for command in (*ONE_SHOT, *CLIENTS, *PAGE, *RECORDER, *RUNNING)
        for failure in KUBECONFIGS
        if not (command.startswith("demo") and failure == "no-context")  # it names no context
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_one_line_that_names_it(
    command: str, failure: str, environment: Path
) -> None:
    with failing(failure, environment) as cluster:
        once = {**ONE_SHOT, **CLIENTS, **PAGE, **RECORDER}
        ended = run(once.get(command) or RUNNING[command][0], cluster)
    could_not_look = {**CLIENTS, **PAGE, **RECORDER, "nodepool --once": ()}
    assert ended.code == (2 if command in could_not_look else 1)
    lines = [line for line in ended.output.splitlines() if not line.startswith("{")]
    (line,) = lines
    assert line.startswith("gpu-metrics-adapter: ")
    assert str(cluster.kubeconfig) in line
    assert ended.problems == []


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        (command, failure)
        for command in RUNNING
        for failure in (*ANSWERS, *UNREACHED)
        if failure != "silent" or command.startswith("nodepool")  # the others wait for a minute
    ],
    indirect=["broken"],
)
def test_a_command_that_keeps_running_warns_once_of_an_api_server_that_fails(
    command: str, broken: tuple[str, Failing]
) -> None:
    failure, cluster = broken
    arguments, parts = RUNNING[command]

    def said(output: str) -> bool:
        return sum(output.count(f'"event": "{event}"') for event in FAILED) >= parts

    ended = run(arguments, cluster, until=said)
    assert "Traceback" not in ended.output
    assert ended.code == 0
    (warning,) = ended.problems
    assert failure in json.dumps(warning) or failure in ("html", "silent", *UNREACHED)


@pytest.mark.parametrize(
    ("command", "last"), [("serve", "request-header"), ("nodepool", "provisioning method")]
)
def test_a_normal_start_and_end_logs_no_warning(command: str, last: str, environment: Path) -> None:
    with failing(WELL, environment) as cluster:
        ended = run(RUNNING[command][0], cluster, lambda output: f'"event": "{last}' in output)
    assert ended.code == 0
    assert f'"event": "{last}' in ended.output
    assert ended.problems == []


FAILED: Final = (
    "watch failed",
    "planning is paused, headroom is kept",
    "discovery of the served APIs failed",
    "lease not renewed",
    "the page stays as it was",
)
"""What a part logs when its request failed; the first at warning, the others below."""
