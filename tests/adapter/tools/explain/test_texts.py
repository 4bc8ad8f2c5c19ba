"""What ``explain hpa`` prints in each situation, word for word.

``UPDATE_TEXTS=1`` writes the texts; review the difference before it is committed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapter.tools.client.access import Api
from adapter.tools.explain import hpafacts, hpametric
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.explain.cluster import NOW, NS, Json
from tests.adapter.tools.explain.situations import SITUATIONS

TEXTS = Path(__file__).parent / "texts"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    monkeypatch.setattr(hpafacts, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as server_and_file:
        yield server_and_file


def run(lab: tuple[ApiServer, Path], name: str, *arguments: str) -> Ended:
    """Explain the HPA of a situation."""
    server, file = lab
    SITUATIONS[name].world.serve(server)
    ended = invoke("explain", "hpa", "llm", "--kubeconfig", str(file), *arguments)
    return Ended(
        ended.code, ended.output.replace(server.url, "https://lab").replace(str(file), "~")
    )


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_text_of_a_situation(name: str, lab: tuple[ApiServer, Path]) -> None:
    ended = run(lab, name)
    path = TEXTS / f"{name}.txt"
    if os.environ.get("UPDATE_TEXTS"):
        path.write_text(ended.output, encoding="utf-8")
    assert ended.output == path.read_text(encoding="utf-8")
    assert ended.code == SITUATIONS[name].status


@pytest.mark.parametrize("name", SITUATIONS)
def test_json_has_the_same_verdict_as_the_text(name: str, lab: tuple[ApiServer, Path]) -> None:
    ended = run(lab, name, "-o", "json")
    report = json.loads(ended.output)
    text = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    assert report["verdict"].replace("→", "->") in text.splitlines()[0]
    assert bool(report["blocks"]) == (ended.code == 1)


def test_every_text_belongs_to_a_situation() -> None:
    assert {path.stem for path in TEXTS.glob("*.txt")} == set(SITUATIONS)


def test_pods_without_a_value_beyond_the_bound_are_counted(
    lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hpametric, "_PROBLEMS", 1)
    assert "    and 1 pod more that does not count\n" in run(lab, "pods-that-end").output
    (metric,) = json.loads(run(lab, "pods-that-end", "-o", "json").output)["metrics"]
    assert [pod["name"] for pod in metric["pods"]] == ["llm-7f9", "llm-a11"]
    assert (metric.get("morePods"), metric["morePodsLeftOut"]) == (None, 1)


def test_some_other_hpas_are_compared() -> None:
    other = {"metadata": {"namespace": NS}, "spec": {"scaleTargetRef": {"name": "llm"}}}
    hpas = [{**other, "metadata": {"namespace": NS, "name": f"h{index:02}"}} for index in range(60)]

    class Listing:
        async def list(self, path: str) -> list[Json]:
            return hpas

    rivals = asyncio.run(hpafacts._rivals(cast("Api", Listing()), hpas[0], [{}]))
    assert [row["metadata"]["name"] for row in rivals] == [f"h{index:02}" for index in range(1, 51)]
