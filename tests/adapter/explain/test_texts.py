"""What ``explain hpa`` prints in each situation, word for word.

``UPDATE_TEXTS=1`` writes the texts; review the difference before it is committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapter.explain import hpafacts
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import Ended, invoke
from tests.adapter.explain.cluster import NOW
from tests.adapter.explain.situations import SITUATIONS

TEXTS = Path(__file__).parent / "texts"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ApiServer, Path]]:
    monkeypatch.setattr(hpafacts, "time", SimpleNamespace(time=lambda: NOW))
    with api_server(tmp_path) as found:
        yield found


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
    found = json.loads(ended.output)
    text = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    assert found["verdict"].replace("→", "->") in text.splitlines()[0]
    assert bool(found["blocks"]) == (ended.code == 1)


def test_every_text_belongs_to_a_situation() -> None:
    assert {path.stem for path in TEXTS.glob("*.txt")} == set(SITUATIONS)
