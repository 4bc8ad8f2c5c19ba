"""`serve` answers KEDA from the store that it answers the HPA from."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.service import NAME
from adapter.config.process.config import ConfigError, load
from tests.adapter.answers.keda.client import serialize
from tests.adapter.commandline import invoke
from tests.adapter.serving import Exporter, Lab, Serving, eventually

METADATA = {"metric": "DCGM_FI_DEV_GPU_UTIL", "target": "70", "podSelector": "app=inf"}
REF = messages.ScaledObjectRef(name="so", namespace="ns", scalerMetadata=METADATA)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    exporter = Exporter()
    yield Lab(tmp_path, exporter)
    exporter.close()


@contextmanager
def channel(
    serving: Serving, credentials: grpc.ChannelCredentials | None = None
) -> Iterator[grpc.Channel]:
    address = f"localhost:{serving.wait_for('listening for KEDA')['port']}"
    with (
        grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
    ) as opened:
        yield opened


def value(through: grpc.Channel) -> float | str:
    """The value that KEDA gets, or the name of the status."""
    call: Any = through.unary_unary(
        f"/{NAME}/GetMetrics", serialize, messages.GetMetricsResponse.FromString
    )
    try:
        answer = call(messages.GetMetricsRequest(scaledObjectRef=REF), timeout=10)
    except grpc.RpcError as error:
        return str(error.code().name)
    return float(answer.metricValues[0].metricValueFloat)


def test_keda_gets_what_exporters_report_and_never_zero_when_they_fall_silent(lab: Lab) -> None:
    lab.config["values"] = {"age_limit": "1s"}
    with lab.serving() as serving, channel(serving) as opened, serving.client() as client:
        eventually(lambda: value(opened) == 80.0)
        text = client.get("/metrics").text
        assert re.search(
            r'^gma_keda_calls_total\{code="OK",method="GetMetrics"\} [1-9]', text, re.MULTILINE
        )
        assert "gma_keda_certificate_ok 1.0" in text
        lab.exporter.status = 500
        seen: set[float | str] = set()

        def missing() -> bool:
            seen.add(value(opened))
            return "FAILED_PRECONDITION" in seen

        eventually(missing)
        assert seen <= {80.0, "FAILED_PRECONDITION"}
        lab.exporter.status = 200
        eventually(lambda: value(opened) == 80.0)


def test_with_tls_it_has_the_https_certificate_and_sigterm_ends_streams_with_ok(lab: Lab) -> None:
    lab.config["keda"]["tls"] = True
    with lab.serving() as serving:
        ca = (lab.folder / "certs" / "ca.crt").read_bytes()
        with channel(serving) as in_the_clear:
            assert value(in_the_clear) == "UNAVAILABLE"
        with channel(serving, grpc.ssl_channel_credentials(ca)) as opened:
            eventually(lambda: value(opened) == 80.0)
            method: Any = opened.unary_stream(
                f"/{NAME}/StreamIsActive", serialize, messages.IsActiveResponse.FromString
            )
            stream = method(REF)
            assert next(stream).result is True
            serving.process.terminate()
            assert list(stream) == []
            assert stream.code() is grpc.StatusCode.OK
        assert serving.process.wait(60) == 0


def test_a_port_in_use_exits_1_and_is_named(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        lab.config["keda"]["port"] = port
        ended = invoke("serve", "--config", str(lab.write()))
    assert ended.code == 1
    assert f"cannot listen on 127.0.0.1:{port} for KEDA: it is in use" in ended.output


def test_a_certificate_that_is_not_there_exits_1_and_is_named(lab: Lab) -> None:
    lab.config["keda"] |= {"tls": True, "cert_file": "/no/tls.crt", "key_file": "/no/tls.key"}
    ended = invoke("serve", "--config", str(lab.write()))
    assert ended.code == 1
    assert "/no/tls.crt: No such file or directory" in ended.output


def test_grpc_and_httpx_are_not_even_imported_where_nothing_needs_them() -> None:
    loaded = "{'grpc', 'httpx'} & {*sys.modules}"
    program = f"import sys, adapter.server.serve.run; sys.exit({loaded} != set())"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


SETTINGS = {
    "half a pair": ({"GMA_KEDA__TLS": "true", "GMA_KEDA__CERT_FILE": "/c"}, "go together"),
    "a certificate without TLS": (
        {"GMA_KEDA__CERT_FILE": "/c", "GMA_KEDA__KEY_FILE": "/k"},
        "cert_file and client_ca_file are for TLS: set tls to true",
    ),
    "a client CA without TLS": ({"GMA_KEDA__CLIENT_CA_FILE": "/c"}, "set tls to true"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_contradict_each_other_are_refused(name: str) -> None:
    environ, words = SETTINGS[name]
    with pytest.raises(ConfigError, match=words):
        load(environ=environ)


def test_keda_is_served_on_port_6000_by_default() -> None:
    keda = load(environ={}).keda
    assert (keda.enabled, keda.port, keda.tls) == (True, 6000, False)
