"""Faults of a store (GMA301 to GMA306)."""

from __future__ import annotations

from typing import Any

from adapter.tools.doctor.facts import Fact, Facts
from tests.adapter.tools.doctor.clean import (
    clean_store,
    row,
    stored,
)
from tests.adapter.tools.doctor.faults.register import fault


def from_store(facts: Facts, **more: Any) -> None:
    whole = clean_store()
    facts.release, facts.store = whole.release, Fact(stored(**more))


@fault("GMA301")
def no_store(facts: Facts) -> None:
    from_store(facts, problem="does not answer: connection refused")


@fault("GMA302")
def no_series(facts: Facts) -> None:
    from_store(facts, series=[])


@fault("GMA303")
def one_target(facts: Facts) -> None:
    from_store(facts, series=[row("gpu-a", "llm-1")])


@fault("GMA304")
def seldom(facts: Facts) -> None:
    from_store(facts, intervals={"gpu-a:9400": 60.0})


@fault("GMA305")
def labels_dropped(facts: Facts) -> None:
    from_store(facts, series=[row("gpu-a"), row("gpu-b")])


@fault("GMA306")
def honored(facts: Facts) -> None:
    mine = row("gpu-a", namespace="chat", pod="llm-1")
    from_store(facts, series=[mine, row("gpu-b")])
