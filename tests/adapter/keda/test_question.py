"""What is remembered of the questions that ScaledObjects ask."""

from __future__ import annotations

import pytest

from adapter.keda.question import Questions
from adapter.keda.trigger import TriggerError
from tests.adapter.keda.cluster import METRIC, trigger

KNOWN = (METRIC,)


def test_a_trigger_is_compiled_once_whatever_the_order_of_its_keys() -> None:
    questions, ref = Questions(), trigger()
    first = questions.get(ref, KNOWN)
    turned = ref._replace(metadata=dict(reversed(list(ref.metadata.items()))))
    assert questions.get(turned, KNOWN) is first


def test_a_trigger_is_compiled_anew_when_the_metrics_change() -> None:
    questions, more = Questions(), (METRIC, "another")
    first = questions.get(trigger(), KNOWN)
    second = questions.get(trigger(), more)
    assert second is not first
    assert questions.get(trigger(), more) is second


def test_questions_of_two_scaled_objects_are_two() -> None:
    questions = Questions()
    first = questions.get(trigger(), KNOWN)
    assert questions.get(trigger()._replace(name="other"), KNOWN) is not first
    assert questions.get(trigger()._replace(namespace="other"), KNOWN) is not first


def test_what_is_remembered_is_bounded_by_its_size() -> None:
    questions = Questions(limit=200_000)
    first = questions.get(trigger(), KNOWN)
    questions.get(trigger(scalerAddress="x" * 100_000), KNOWN)
    assert questions.get(trigger(), KNOWN) is first
    questions.get(trigger(scalerAddress="y" * 100_000), KNOWN)
    assert questions.get(trigger(), KNOWN) is not first


def test_a_wrong_trigger_is_not_remembered() -> None:
    questions = Questions()
    for _ in range(2):
        with pytest.raises(TriggerError, match="metric: there is no 'x'"):
            questions.get(trigger(metric="x"), KNOWN)
