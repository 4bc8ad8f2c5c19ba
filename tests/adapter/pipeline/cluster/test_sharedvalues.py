"""Values that pods have in common are kept once."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster import sharedvalues
from adapter.pipeline.cluster.sharedvalues import SharedValues


def test_equal_values_are_one_object() -> None:
    shared = SharedValues()
    first = shared.mapping({"app": "".join(["ll", "m"])})
    assert shared.mapping({"app": "llm"}) is first
    assert shared.text("".join(["l", "lm"])) is first["app"]


def test_a_full_table_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedvalues, "_LIMIT", 100_000)
    shared = SharedValues()
    first = shared.mapping({"app": "llm", "pod": "0"})
    most = 0
    for number in range(1, 1000):
        shared.mapping({"app": "llm", "pod": str(number)})
        most = max(most, shared._bytes)
    assert 50_000 < most <= 100_000
    again = shared.mapping({"app": "llm", "pod": "0"})
    assert again == first
    assert again is not first


def test_a_value_above_the_bound_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedvalues, "_LIMIT", 10_000)
    shared = SharedValues()
    assert shared.text("x" * 20_000) == "x" * 20_000
    assert shared._bytes == 0
