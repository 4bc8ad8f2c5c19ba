from __future__ import annotations

from apiservice.runtime.nearest import nearest, nearest_in_steps

NAMES = ["llm2", "chat-llm-inference", "batch", "llm1"]


def test_the_best_names_come_first() -> None:
    assert nearest("llm1", NAMES) == ["llm1", "llm2"]
    assert nearest("llm1", NAMES, 1) == ["llm1"]
    assert nearest("llm1", NAMES, cutoff=0.8) == ["llm1"]


def test_names_that_resemble_come_before_names_that_contain() -> None:
    assert nearest("llm", NAMES, parts=True) == ["llm1", "llm2", "chat-llm-inference"]
    assert nearest("batches-of-mine", ["batch", ""], parts=True) == ["batch"]


def test_nothing_resembles_a_text_that_is_not_a_name() -> None:
    assert nearest("", ["a"], parts=True) == []
    assert nearest("a" * 254, ["a" * 253], parts=True) == []


def test_each_name_is_one_step() -> None:
    assert len(list(nearest_in_steps("llm", NAMES))) == len(NAMES)
