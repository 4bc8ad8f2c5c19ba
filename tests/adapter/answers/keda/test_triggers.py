"""What is remembered of the triggers that ScaledObjects have."""

from __future__ import annotations

import tracemalloc

import pytest

from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.triggers import Triggers
from tests.adapter.answers.keda.cluster import METRIC, named, trigger

KNOWN = (METRIC,)


def test_a_trigger_is_compiled_once_for_any_order_of_its_keys() -> None:
    triggers, ref = Triggers(), trigger()
    first = triggers.get(ref, KNOWN)
    turned = ref._replace(metadata=dict(reversed(list(ref.metadata.items()))))
    assert triggers.get(turned, KNOWN) is first


def test_a_trigger_is_compiled_again_when_the_metrics_change() -> None:
    triggers, more = Triggers(), (METRIC, "another")
    first = triggers.get(trigger(), KNOWN)
    second = triggers.get(trigger(), more)
    assert second is not first
    assert triggers.get(trigger(), more) is second


def test_triggers_of_two_scaled_objects_are_two() -> None:
    triggers = Triggers()
    first = triggers.get(trigger(), KNOWN)
    assert triggers.get(trigger()._replace(name="other"), KNOWN) is not first
    assert triggers.get(trigger()._replace(namespace="other"), KNOWN) is not first


def test_the_triggers_not_asked_for_longest_are_forgotten_first() -> None:
    triggers = Triggers(limit=60_000)
    first, second = triggers.get(trigger(), KNOWN), triggers.get(trigger(target="1"), KNOWN)
    for index in range(1000):
        triggers.get(trigger(target=str(index + 2)), KNOWN)
        assert triggers.get(trigger(), KNOWN) is first
        assert triggers.size <= 60_000
    assert triggers.get(trigger(target="1"), KNOWN) is not second


def test_1500_triggers_of_a_usual_size_fit() -> None:
    triggers = Triggers()
    refs = [trigger(podSelector=f"app=inference-{index},tier=gpu") for index in range(1500)]
    entries = [triggers.get(ref, KNOWN) for ref in refs]
    assert [triggers.get(ref, KNOWN) for ref in refs] == entries


SELECTORS = {
    "many requirements": "some-longer-key-{at}x{i}!=v{i}",
    "keys alone": "some-longer-key-{at}x{i}",
    "long values": "k{at}x{i}=" + "v" * 60,
}


@pytest.mark.parametrize("name", SELECTORS)
def test_what_is_remembered_takes_about_its_bound_in_memory(name: str) -> None:
    limit, triggers = 700_000, Triggers(limit=700_000)
    tracemalloc.start()
    try:
        for index in range(100):
            text = ",".join(SELECTORS[name].format(at=index, i=i) for i in range(64))
            triggers.get(trigger(metricSelector=text), KNOWN)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert triggers.size <= limit
    assert taken < 1.5 * limit, "sizes are estimated"


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_names_count_as_what_they_take_in_memory(key: str) -> None:
    limit, triggers = 2_000_000, Triggers(limit=2_000_000)
    tracemalloc.start()
    try:
        for index in range(1000):
            long = f"{index:0253}"[:252] + "\U0001f600"
            triggers.get(named(trigger(target=str(index + 1)), key, long), KNOWN)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert triggers.size <= limit
    assert taken < 1.5 * limit, "sizes are estimated"


def test_a_wrong_trigger_is_not_remembered() -> None:
    triggers = Triggers()
    for _ in range(2):
        with pytest.raises(BadTrigger, match="metric: no metric is named 'x'"):
            triggers.get(trigger(metric="x"), KNOWN)
    assert triggers.size == 0
