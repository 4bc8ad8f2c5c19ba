"""A command ends in one line for objects of a cluster with any types."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apiservice.kube.client import call
from tests.adapter.clientapi import ApiServer
from tests.adapter.commandline import invoke
from tests.adapter.everytool import TOOLS, busy_cluster
from tests.examples import TIMES

COMMANDS = TOOLS | {
    "idle csv": ("idle", "-o", "csv"),
    "migrate -o apiservices-before": ("migrate", "prometheus-adapter", "-o", "apiservices-before"),
    "top hpas": ("top", "hpas", "-A", "-o", "json"),
}
ODD: Sequence[Any] = (None, 5, -1e30, True, "", "\x1b[2J", [], [None], {}, {"a": 1}, 10**400)
TRIES = {"doctor": 3}
"""Answers of another form that each command gets in `make test`; the others get 8."""

Place = tuple[str, tuple[Any, ...]]
"""Path of a request, and the keys that lead to a value of its answer."""


class Garbler:
    """Changes one value of the answers on their way from the server."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self.places: set[Place] = set()
        self.change: tuple[Place, Any] | None = None

    async def __call__(
        self, client: Any, method: str, path: str, *more: Any, **named: Any
    ) -> bytes:
        answer: bytes = await self._call(client, method, path, *more, **named)
        content = msgspec.json.decode(answer)
        endpoint = path.partition("?")[0]
        self.places |= {(endpoint, keys) for keys in _keys(content)}
        if self.change is None or self.change[0][0] != endpoint:
            return answer
        (_, keys), odd = self.change
        return msgspec.json.encode(_with(content, keys, odd))


def _keys(value: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, inner in items if isinstance(value, (dict, list)) else ():
        if isinstance(inner, (dict, list)):
            yield from ((key, *rest) for rest in _keys(inner))
        else:
            yield (key,)


def _with(value: Any, keys: tuple[Any, ...], odd: Any) -> Any:
    if not keys:
        return odd
    try:
        value[keys[0]] = _with(value[keys[0]], keys[1:], odd)
    except (LookupError, TypeError):
        return value
    return value


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with busy_cluster(tmp_path) as server_and_file:
        yield server_and_file


@pytest.mark.hypothesis  # `make fuzz` tries more
@pytest.mark.parametrize("name", COMMANDS)
def test_an_answer_of_another_form_is_one_line(
    name: str, lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = lab
    garbler = Garbler(call)
    monkeypatch.setattr("adapter.tools.client.access.call", garbler)
    command = (*COMMANDS[name], "--kubeconfig", str(file))
    assert invoke(*command).code in (0, 1)
    places = sorted(garbler.places, key=str)
    assert len(places) > 10
    chance = random.Random(name)
    for _ in range(TRIES.get(name, 8) * TIMES):
        garbler.change = chance.choice(places), chance.choice(ODD)
        ended = invoke(*command)
        assert ended.code in (0, 1, 2), garbler.change
        assert "\x1b" not in ended.output, garbler.change
        assert "Traceback" not in ended.output, garbler.change
