"""A command imports only what it uses. An import takes up to half a second and 30 MB."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapter.clientapi import ApiServer
from tests.adapter.commandline import clean_environ
from tests.adapter.everytool import TOOLS, busy_cluster
from tests.adapter.serving import Exporter, Lab, eventually

PROGRAM = "import sys; from adapter.__main__ import main; sys.exit(main())"
_IMPORTED = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)

CLOUDS = {"azure.core", "azure.identity", "azure.monitor", "boto3", "botocore", "google.auth"}
SYNCHRONOUS = {"kubernetes.client", "kubernetes.config", "kubernetes.dynamic", "requests_oauthlib"}
"""The half of the Kubernetes client that nothing uses, and what it brings along."""
KUBERNETES = {"kubernetes.aio.client", "dateutil", "aiohttp_retry"}
"""The client of its asynchronous half: the project has its own."""
STORES = {"prometheus_api_client", "pandas", "numpy"}
PLOTS = {"matplotlib"}
SERVERS = {"fastapi", "uvicorn", "grpc", "prometheus_client"}
LOGS = {"structlog", "rich"}
SETTINGS = {"pydantic_settings"}
NEVER = CLOUDS | SYNCHRONOUS | KUBERNETES | STORES | PLOTS | {"oauthlib"}
TERMINAL = NEVER | SERVERS | LOGS | SETTINGS | {"requests", "urllib3", "httpx", "cryptography"}
"""Not in a command that reads a cluster and writes to a terminal."""
UNUSED = {
    "--help": TERMINAL | {"adapter.pipeline.catalog", "aiohttp", "kubernetes", "pydantic", "yaml"},
    **{
        command: TERMINAL | {"adapter.config.settings", "pydantic"}
        for command in TOOLS
        if command not in ("doctor", "migrate")
    },
    "doctor": TERMINAL,
    "migrate": NEVER | SERVERS | SETTINGS,
}


def imported(written: str) -> set[str]:
    """The modules that Python wrote with ``-X importtime``."""
    return set(_IMPORTED.findall(written))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiServer, Path]]:
    with busy_cluster(tmp_path_factory.mktemp("cluster")) as opened:
        yield opened


@pytest.mark.parametrize("command", UNUSED)
def test_a_command_does_not_import_what_it_does_not_use(
    cluster: tuple[ApiServer, Path], command: str
) -> None:
    _, file = cluster
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM, *TOOLS.get(command, (command,))],
        env=clean_environ() | {"KUBECONFIG": str(file)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    modules = imported(ended.stderr)
    assert ended.returncode in (0, 1), ended.stderr[-2000:]  # it looked, and printed
    assert "click" in modules
    assert not modules & UNUSED[command]


@pytest.mark.parametrize("keda", [False, True])
def test_serve_in_a_cluster_imports_only_what_its_settings_name(
    cluster: tuple[ApiServer, Path], tmp_path: Path, keda: bool
) -> None:
    exporter = Exporter()
    lab = Lab(tmp_path, exporter)
    lab.config["cluster"] = {"kubeconfig": str(cluster[1])}
    lab.config["keda"]["enabled"] = keda
    try:
        with lab.serving(PYTHONPROFILEIMPORTTIME="1") as serving, serving.client(None) as client:
            eventually(lambda: client.get("/livez").status_code == 200)
    finally:
        exporter.close()
    modules = imported("\n".join(str(entry["event"]) for entry in serving.log))
    assert "kubernetes.aio.config.kube_config" in modules
    assert not modules & (NEVER | {"requests", "urllib3", "httpx"})
    assert ("grpc" in modules) == keda


def test_the_parts_of_nodepool_and_of_the_synchronous_half_are_imported_side_by_side() -> None:
    """The leader election is in the asynchronous half. Who asks for the other one gets it."""
    program = "import adapter.nodepool.run.process"
    later = f"{program}; import kubernetes.client; kubernetes.client.V1Pod()"
    for text, synchronous in ((program, False), (later, True)):
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", text],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        modules = imported(ended.stderr)
        assert "kubernetes.aio.leaderelection.leaderelection" in modules
        assert ("kubernetes.client" in modules) == synchronous
