"""Names of the cluster that a shell completes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from adapter.__main__ import main
from adapter.tools.client.errors import VIEW
from tests.adapter.clientapi import ApiServer, api_server, forbidden, table_row

TABLES = {
    "/api/v1/namespaces": ["chat", "research", "bad name", "x\x1b[2J", "$(touch x)"],
    "/api/v1/nodes": ["n1", "n2"],
    "/api/v1/namespaces/chat/pods": ["llm-7f9", "embed-0"],
    "/api/v1/namespaces/research/pods": ["train-0"],
    "/apis/autoscaling/v2/namespaces/chat/horizontalpodautoscalers": ["llm", "embed"],
    f"{VIEW}/gpus": ["n1.gpu0"],
    f"{VIEW}/namespaces/chat/gpuworkloads": ["deployment.llm"],
}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as (server, file):
        for path, names in TABLES.items():
            server.tables[path] = (("Name",), [table_row(name, ()) for name in names])
        yield server, file


def completed(lab: tuple[ApiServer, Path], typed: str) -> list[str]:
    *words, incomplete = typed.split(" ")
    shell = BashComplete(main, {}, "gpu-metrics-adapter", "X")
    words = ["--kubeconfig", str(lab[1]), *words]
    return [completion.value for completion in shell.get_completions(words, incomplete)]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("explain hpa ", ["embed", "llm"]),
        ("explain hpa l", ["llm"]),
        ("explain hpa/l", ["hpa/llm"]),
        ("explain hpas/", ["hpas/embed", "hpas/llm"]),
        ("explain pod ", ["embed-0", "llm-7f9"]),
        ("explain pod -n research ", ["train-0"]),
        ("-n research explain pod ", ["train-0"]),
        ("explain -n research pod/", ["pod/train-0"]),
        ("explain node n", ["n1", "n2"]),
        ("explain gpu ", ["n1.gpu0"]),
        ("explain workload ", ["deployment.llm"]),
        ("explain no", ["node"]),
        ("top -n ", ["chat", "research"]),
        ("-n r", ["research"]),
        ("--context ", ["lab"]),
        ("idle --context l", ["lab"]),
        ("explain hpa -n gone ", []),
    ],
)
def test_names_come_from_the_cluster_that_the_line_names(
    typed: str, names: list[str], lab: tuple[ApiServer, Path]
) -> None:
    assert completed(lab, typed) == names


def test_a_cluster_that_cannot_be_asked_completes_nothing_and_says_nothing(
    lab: tuple[ApiServer, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    lab[0].always = forbidden("bob", "list", "pods", "", "chat")
    assert completed(lab, "explain pod ") == []
    lab[1].write_text("clusters: 5")
    assert completed(lab, "explain pod ") == []
    assert completed(lab, "--context ") == []
    lab[1].unlink()
    assert completed(lab, "explain pod ") == []
    assert capfd.readouterr() == ("", "")
