"""``doctor`` reads objects from their texts. What it finds is what it finds in their JSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapter.pipeline.cluster import objects, podobjects, workloadobjects
from adapter.tools.doctor import collect
from tests.adapter.clientapi import ApiServer
from tests.adapter.everytool import busy_cluster
from tests.adapter.tools.doctor.clean import clean
from tests.adapter.tools.doctor.test_collect import look
from tests.adapter.tools.doctor.test_seen import live_cases

World = Callable[[Path], AbstractContextManager[tuple[ApiServer, Path]]]


def _of_json(reads: Callable[..., Any]) -> Callable[..., Any]:
    """The full way: of the whole JSON, without the nulls."""

    def full(*arguments: Any, **named: Any) -> Any:
        *before, text = arguments
        return reads(*before, msgspec.json.decode(text), **named)

    return full


@pytest.mark.parametrize("world", [busy_cluster, live_cases])
def test_both_ways_give_the_same_findings(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as (_, kubeconfig):
        short = look(kubeconfig)
        monkeypatch.setattr(collect, "decode", _of_json(objects.read))
        monkeypatch.setattr(collect, "decode_pod", _of_json(podobjects.read_pod))
        monkeypatch.setattr(collect, "decode_workload", _of_json(workloadobjects.read_workload))
        full = look(kubeconfig)
    assert any(row.get("findings") for row in short["checks"])
    assert _lasting(short) == _lasting(full)


def _lasting(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what changes with the clock."""
    return {**report, "checks": [{**row, "seconds": None} for row in report["checks"]]}


def test_the_facts_of_a_large_cluster_are_never_written_as_text() -> None:
    """A loop that ends writes the text of its result: that of 150,000 pods takes 300 MB."""
    facts = clean()
    assert facts.pods.read()
    assert len(repr(facts)) < 200
