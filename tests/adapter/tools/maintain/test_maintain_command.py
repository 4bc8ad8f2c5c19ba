"""The command line of `maintain`, against an API server over HTTP."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from adapter.__main__ import main
from adapter.tools.maintain.trust import issuer_of, read_bundle
from tests.adapter.tools.maintain.fakecluster import CERTIFICATE, FakeCluster

NAMES = ("--namespace", "gpu-metrics", "--service", "adapter")
CERTIFICATES = (
    "certificates",
    *NAMES,
    *("--secret", "adapter-certificate", "--ca-secret", "adapter-ca"),
    *("--apiservice", "v1beta1.custom.metrics.k8s.io"),
)
UNREGISTER = ("unregister", *NAMES, "--apiservice", "v1beta1.custom.metrics.k8s.io")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.api.date

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _answer(self, status: int, obj: Any) -> None:
        body = json.dumps(obj).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _handle(self) -> None:
        api = self.api
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        api.requests.append(f"{self.command} {self.path}")
        manifest = api.cluster.objects.get(self.path)
        if self.path == "/version":
            self._answer(200, {})
        elif api.answer is not None:
            self._answer(api.answer[0], {"message": api.answer[1]})
        elif manifest is None:
            self._answer(404, {"message": "not found"})
        elif self.command == "GET":
            self._answer(200, manifest)
        else:
            self._write(body)

    def _write(self, body: Any) -> None:
        cluster = self.api.cluster
        if self.api.before_write():
            self.close_connection = True
            return
        if self.command == "DELETE":
            change = cluster.delete(self.path, body["preconditions"]["resourceVersion"])
        else:
            change = cluster.patch(self.path, body)
        with contextlib.suppress(StopIteration):
            while True:
                change.send(None)
        self.api.after_write()
        with contextlib.suppress(ConnectionError):  # of a client that was killed
            self._answer(200, cluster.objects.get(self.path, {}))

    do_GET = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server looks for these names


class Api:
    """A :class:`FakeCluster` behind HTTP."""

    def __init__(self, folder: Path) -> None:
        self.cluster = FakeCluster()
        self.cluster.install()
        self.answer: tuple[int, str] | None = None
        """What every request for an object gets instead."""
        self.date = "Fri, 15 Jan 2027 08:00:00 GMT"
        self.requests: list[str] = []
        self.before_write: Callable[[], object] = int
        """Returns whether the request is lost with its client."""
        self.after_write: Callable[[], object] = int
        handler = type("OwnHandler", (Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.kubeconfig = folder / "kubeconfig"
        server = f"http://127.0.0.1:{self._server.server_port}"
        config = {
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "secret-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def run(self, *arguments: str) -> tuple[int, str]:
        command = ["maintain", *arguments, "--kubeconfig", str(self.kubeconfig), "--wait", "0"]
        done = CliRunner().invoke(main, command)
        return done.exit_code, done.output


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    server = Api(tmp_path)
    yield server
    server.stop()


def test_certificates_are_made_with_the_api_servers_clock(api: Api) -> None:
    code, output = api.run(*CERTIFICATES)
    assert code == 0, output
    events = [json.loads(line) for line in output.splitlines()]
    assert [row["event"] for row in events] == [
        "CA created",
        "caBundle written",
        "certificate issued",
    ]
    assert events[-1]["ends"].startswith("2027-04-15T08:00:0")
    assert api.cluster.bundle("v1beta1.custom.metrics.k8s.io").startswith(b"-----BEGIN")
    assert "PRIVATE KEY" not in output
    assert "secret-token" not in output


def test_a_second_run_reads_only_and_is_silent(api: Api) -> None:
    api.run(*CERTIFICATES)
    api.requests.clear()
    assert api.run(*CERTIFICATES) == (0, "")
    assert api.requests == [
        "GET /version",
        "GET /apis/apiregistration.k8s.io/v1/apiservices/v1beta1.custom.metrics.k8s.io",
        "GET /api/v1/namespaces/gpu-metrics/secrets/adapter-certificate",
        "GET /api/v1/namespaces/gpu-metrics/secrets/adapter-ca",
    ]


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_a_process_that_is_killed_at_a_write_leaves_what_the_next_heals(
    api: Api, moment: str
) -> None:
    """SIGKILL, at the first write and one later in each run, until a run comes to its end."""
    ends: list[int] = []
    while not ends or ends[-1] != 0:
        api.cluster.install()
        ends.append(Doomed(api, moment, len(ends)).run())
        assert api.run(*CERTIFICATES)[0] == 0
        (leaf,) = read_bundle(api.cluster.data(CERTIFICATE, "tls.crt"))
        trusted = api.cluster.bundle("v1beta1.custom.metrics.k8s.io")
        assert issuer_of(leaf, read_bundle(trusted))
        assert trusted == api.cluster.data(CERTIFICATE, "ca.crt")
        assert api.run(*CERTIFICATES) == (0, "")
    assert set(ends[:-1]) == {-signal.SIGKILL}
    assert len(ends) > 3, "CA, caBundle, certificate"


class Doomed:
    """The command in a process that is killed at a write, if it has so many."""

    def __init__(self, api: Api, moment: str, writes: int) -> None:
        self._api, self._moment, self._left = api, moment, writes
        self._started = threading.Event()

    def run(self) -> int:
        command = [sys.executable, "-m", "adapter", "maintain", *CERTIFICATES]
        command += ["--kubeconfig", str(self._api.kubeconfig), "--wait", "0"]
        setattr(self._api, self._moment, self._strike)
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            self._started.set()
            return self._process.wait(120)
        finally:
            setattr(self._api, self._moment, int)

    def _strike(self) -> bool:
        self._left -= 1
        if self._left >= 0:
            return False
        self._started.wait(60)
        self._process.kill()
        self._process.wait(60)
        return True


def test_unregister_deletes_and_says_so(api: Api) -> None:
    code, output = api.run(*UNREGISTER)
    assert code == 0, output
    assert json.loads(output)["event"] == "APIService deleted"
    assert api.run(*UNREGISTER) == (0, "")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((403, "cannot get resource"), "403 cannot get resource; apply the chart again: its roles"),
        ((503, "busy"), "503 busy; the Job retries"),
        ((422, "caBundle: Invalid value"), "422 caBundle: Invalid value"),
    ],
)
def test_a_rejection_exits_1_and_names_the_object_and_the_fix(
    api: Api, answer: tuple[int, str], words: str
) -> None:
    api.answer = answer
    code, output = api.run(*CERTIFICATES)
    assert code == 1
    assert words in output
    assert re.search(r"(apiservices|secrets)/\S", output)


@pytest.mark.parametrize(
    "arguments", [CERTIFICATES, UNREGISTER], ids=["certificates", "unregister"]
)
def test_what_is_somebody_elses_is_exit_code_2(api: Api, arguments: tuple[str, ...]) -> None:
    """The chart's Jobs do not try again for it."""
    api.cluster.register("v1beta1.custom.metrics.k8s.io", "monitoring", "prometheus-adapter")
    code, output = api.run(*arguments)
    assert code == 2
    assert "v1beta1.custom.metrics.k8s.io" in output
    assert "monitoring/prometheus-adapter" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("certificates",), "Missing option '--namespace'"),
        (("unregister", "--namespace", "x"), "Missing option '--service'"),
        (
            (*CERTIFICATES, "--valid-days", "90", "--ca-valid-days", "100"),
            "--ca-valid-days 100 must be at least twice --valid-days 90",
        ),
        ((*CERTIFICATES, "--valid-days", "0"), "'--valid-days'"),
        (
            (*CERTIFICATES, "--valid-days", "1", "--settle", "28800"),
            "--settle 28800 must be below a third of --valid-days 1 days",
        ),
    ],
)
def test_bad_usage_is_exit_code_2(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(main, ["maintain", *arguments])
    assert done.exit_code == 2
    assert words in done.output


def test_an_unreachable_cluster_fails_the_command(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    done = CliRunner().invoke(main, ["maintain", *UNREGISTER, "--kubeconfig", missing])
    assert done.exit_code == 1
    assert f"kubeconfig {missing} does not exist" in done.output
