"""`healthy`: which process it asks, where, whom it believes, and what it says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from adapter.__main__ import main
from adapter.process.config import load
from adapter.process.healthcheck import Address, Beside, address, beside, problem

SCRIPT = "/opt/gpu-metrics-adapter/bin/gpu-metrics-adapter"
PYTHON = "/opt/gpu-metrics-adapter/bin/python"


def proc_of(folder: Path, processes: dict[int, list[str]]) -> Path:
    for number, words in processes.items():
        (folder / str(number)).mkdir()
        (folder / str(number) / "cmdline").write_text("".join(f"{word}\0" for word in words))
    (folder / "net").mkdir()
    return folder


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        pytest.param(
            {1: [PYTHON, SCRIPT, "serve", "--port", "8443"]},
            Beside("serve", ["--port", "8443"]),
            id="the image's entry point",
        ),
        pytest.param(
            {1: ["/sbin/docker-init", "--", "gpu-metrics-adapter", "nodepool", "--apply"]},
            Beside("nodepool", ["--apply"]),
            id="below an init",
        ),
        pytest.param({1: ["python", "-P", "-m", "adapter", "serve"]}, Beside("serve", []), id="-m"),
        pytest.param(
            {10: [PYTHON, SCRIPT, "nodepool"], 9: [PYTHON, SCRIPT, "serve"]},
            Beside("serve", []),
            id="the oldest by number, not by text",
        ),
        pytest.param(
            {1: ["sh"], 7: [PYTHON, SCRIPT, "healthy"], 8: [PYTHON, SCRIPT, "serve"]},
            Beside("serve", []),
            id="not the one that asks",
        ),
        pytest.param({1: [PYTHON, SCRIPT, "demo", "--port", "9"]}, None, id="demo has no livez"),
        pytest.param({1: [PYTHON, SCRIPT]}, None, id="no command"),
        pytest.param({1: ["cat", "serve"], 2: []}, None, id="others"),
    ],
)
def test_the_process_to_ask_is_known_by_its_command_line(
    processes: dict[int, list[str]], expected: Beside | None, tmp_path: Path
) -> None:
    assert beside(proc_of(tmp_path, processes)) == expected


@pytest.mark.parametrize(
    ("command", "environ", "expected"),
    [
        pytest.param(
            "serve",
            {},
            Address("127.0.0.1", 6443, Path("/tmp/gpu-metrics-adapter/certs/ca.crt")),
            id="serve by default",
        ),
        pytest.param(
            "serve",
            {"GMA_SERVER__HOST": "::", "GMA_SERVER__CERT_FILE": "/c", "GMA_SERVER__KEY_FILE": "/k"},
            Address("::1", 6443, Path("/c")),
            id="its own certificate, IPv6",
        ),
        pytest.param(
            "nodepool", {"GMA_SERVER__PORT": "1"}, Address("127.0.0.1", 8081, None), id="nodepool"
        ),
        pytest.param(
            "nodepool",
            {"GMA_NODEPOOL__HOST": "10.0.0.7", "GMA_NODEPOOL__PORT": "90"},
            Address("10.0.0.7", 90, None),
            id="one address",
        ),
    ],
)
def test_the_address_is_that_of_the_settings(
    command: str, environ: dict[str, str], expected: Address
) -> None:
    assert address(command, load(environ=environ)) == expected


@contextmanager
def answering(status: int, text: str, certificate: trustme.LeafCert | None) -> Iterator[int]:
    """A server that answers `/livez` alone, over TLS if it has a certificate; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/livez" else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("gpu-metrics-adapter.gpu-metrics.svc")


def test_a_server_that_answers_with_the_certificate_of_the_settings_is_well(
    authority: trustme.CA, certificate: trustme.LeafCert, tmp_path: Path
) -> None:
    """Whether they name the certificate itself or, as the self-signed one's, its CA."""
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    with answering(200, "ok", certificate) as port:
        for name in ("ca.crt", "tls.crt"):
            assert problem(Address("127.0.0.1", port, tmp_path / name)) is None


def test_a_server_with_another_certificate_is_not_the_one(
    certificate: trustme.LeafCert, tmp_path: Path
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    with answering(200, "ok", certificate) as port:
        said = problem(Address("127.0.0.1", port, tmp_path / "ca.crt"))
    assert said is not None
    assert "certificate verify failed" in said


def test_a_failing_check_is_named() -> None:
    with answering(500, "[-]rounds failed: reason withheld", None) as port:
        said = problem(Address("127.0.0.1", port, None))
    assert said == "/livez answers 500: [-]rounds failed: reason withheld"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Address("127.0.0.1", 0, None), "set one"),
        (Address("127.0.0.1", 1, None), "127.0.0.1 port 1: [Errno 111]"),
        (Address("127.0.0.1", 1, Path("/none")), "[Errno 2]"),
    ],
    ids=["no port", "nobody listens", "no certificate yet"],
)
def test_what_cannot_be_asked_is_not_well(asked: Address, words: str) -> None:
    assert words in str(problem(asked))


def healthy(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status and output beside a process with this command line."""
    proc = proc_of(folder, {1: [PYTHON, SCRIPT, *words]})
    done = CliRunner().invoke(main, ["healthy", "--proc", str(proc)])
    return done.exit_code, done.output


def test_flags_and_file_of_the_process_count(
    authority: trustme.CA, certificate: trustme.LeafCert, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    config = tmp_path / "config.yaml"
    config.write_text(f"server: {{cert_dir: {tmp_path}, port: 1}}")
    with answering(200, "ok", certificate) as port:
        code, output = healthy(tmp_path, "serve", "--config", str(config), f"--port={port}")
    assert (code, output) == (0, "ok\n")


def test_a_file_that_only_the_flags_make_whole_is_read_with_them(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("{source: {kind: prometheus}, server: {port: 0}}")
    url = "--prometheus-url=http://localhost:9090"
    code, output = healthy(tmp_path, "serve", "--config", str(config), url)
    assert (code, output) == (1, "the port is 0, so it can be asked nowhere: set one\n")


def test_a_process_that_does_not_answer_ends_it_with_1(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("nodepool: {port: 1}")
    code, output = healthy(tmp_path, "nodepool", "--config", str(config))
    assert (code, output) == (1, "127.0.0.1 port 1: [Errno 111] Connection refused\n")


def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    code, output = healthy(tmp_path, "nodepool", "--config", str(tmp_path / "none"))
    assert code == 1
    assert "none: cannot be read" in output


def test_a_container_without_a_listener_is_well(tmp_path: Path) -> None:
    assert healthy(tmp_path, "demo") == (0, "nothing here is to be asked\n")
