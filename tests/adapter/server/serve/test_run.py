"""`serve` as a process: its signals, its readiness, its sockets and its certificates."""

from __future__ import annotations

import signal
import socket
import time

import pytest
import trustme

from tests.adapter.serving import Lab, eventually, ready, values
from tests.apiservice.pki import on_another_curve
from tests.needs import DUAL_STACK, needs


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_fails_readiness_then_drains_and_exits_with_0(
    lab: Lab, sign: signal.Signals
) -> None:
    lab.config["server"]["drain"] = 2
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        serving.process.send_signal(sign)
        eventually(lambda: not ready(client))
        assert values(client) == ["80"]
        assert serving.process.wait(20) == 0


def test_without_an_exporter_it_is_ready_after_the_age_limit_and_not_before(lab: Lab) -> None:
    lab.config["source"]["scrape"]["targets"] = []
    lab.config["values"] = {"age_limit": "4s"}
    started = time.monotonic()
    with lab.serving() as serving, serving.client() as client:
        text = client.get("/readyz?verbose").text
        eventually(lambda: ready(client))
        waited = time.monotonic() - started
    assert waited > 4
    # On a busy machine, the start may have taken longer: then this cannot be checked.
    assert "[-]source failed" in text or waited > 8


def test_a_key_that_cannot_be_read_leaves_the_last_pair_and_the_process(lab: Lab) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost", key_type=trustme.KeyType.ECDSA)
    certificate, key = lab.folder / "tls.crt", lab.folder / "tls.key"
    leaf.cert_chain_pems[0].write_to_path(str(certificate))
    leaf.private_key_pem.write_to_path(str(key))
    lab.config["server"] |= {"cert_file": str(certificate), "key_file": str(key)}
    lab.config["keda"] |= {"tls": True}
    (lab.folder / "certs").mkdir()
    authority.cert_pem.write_to_path(str(lab.folder / "certs" / "ca.crt"))
    with lab.serving() as serving, serving.client() as client:
        eventually(lambda: ready(client))
        key.write_bytes(on_another_curve(key.read_bytes()))
        kept = serving.wait_for("serving certificate rejected; the last good one stays in use")
        assert str(key) in kept["error"]
        serving.wait_for("KEDA certificate rejected; the last good one stays in use")
        with serving.client() as another:
            assert ready(another)
        assert serving.process.poll() is None


@needs(DUAL_STACK)
def test_by_default_both_protocol_versions_are_served(lab: Lab) -> None:
    del lab.config["server"]["host"], lab.config["keda"]["host"]
    with lab.serving() as serving:
        ports = (serving.wait_for(f"listening{where}")["port"] for where in ("", " for KEDA"))
        for port in ports:
            for host in ("127.0.0.1", "::1"):
                with socket.create_connection((host, port), timeout=60) as connected:
                    assert connected.getpeername()[1] == port
