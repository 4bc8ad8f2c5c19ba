"""Lists of objects that are not watched."""

from __future__ import annotations

import msgspec
import pytest

from adapter.answers.rules import objects
from adapter.answers.rules.kinds import BUILT_IN
from adapter.answers.rules.objects import ObjectNames
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import run_in_slices

SERVICES = next(kind for kind in BUILT_IN if kind.resource == "services")


async def test_lists_are_kept_within_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "CACHE_BYTES", 20_000)
    paths: list[str] = []

    async def ask(path: str, accept: str) -> bytes:
        paths.append(path)
        items = [{"metadata": {"name": f"service-{number}"}} for number in range(10)]
        return msgspec.json.encode({"metadata": {}, "items": items})

    lookup = ObjectLookup(PodIndex(), Services(), Nodes())
    names = ObjectNames(lookup, ask)
    for number in range(100):
        assert len(await run_in_slices(names.names(SERVICES, f"ns{number}", EVERYTHING))) == 10
    assert len(paths) == 100
    assert 0 < names._lists.bytes <= 20_000
    await run_in_slices(names.names(SERVICES, "ns99", EVERYTHING))
    assert len(paths) == 100
    await run_in_slices(names.names(SERVICES, "ns0", EVERYTHING))
    assert len(paths) == 101, "the least recently stored list is gone"
