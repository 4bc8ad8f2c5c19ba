"""Trigger metadata: what is accepted, and what is said about the rest."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.api.aggregate import Aggregate
from adapter.answers.keda.demand import number
from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.trigger import compile_trigger

KNOWN = ("gpu_utilization", "DCGM_FI_DEV_GPU_UTIL", "inference_requests_waiting")
LEAST = {"metric": "gpu_utilization", "target": "70"}

REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "no metric": ({"metric": ""}, "metric: is missing; name a metric, e.g. gpu_utilization"),
    "unknown metric": (
        {"metric": "gpu_utilisation"},
        "metric: no metric is named 'gpu_utilisation'; did you mean gpu_utilization?",
    ),
    "metric like nothing": (
        {"metric": "zzz"},
        "metric: no metric is named 'zzz'; docs/metrics.md lists them all",
    ),
    "no target": ({"target": ""}, 'target: is missing; give a number, e.g. target: "70"'),
    "target is a word": (
        {"target": "high"},
        'target: \'high\' is not a number; write e.g. "70", "0.5" or "2Gi"',
    ),
    "target is zero": ({"target": "0"}, "target: '0' must be at least 0.001 and below 9.2e15"),
    "target is negative": ({"target": "-1"}, "target: '-1' must be at least 0.001 and below"),
    "target is NaN": ({"target": "NaN"}, "target: 'NaN' is not a number; write e.g."),
    "target is infinite": ({"target": "inf"}, "target: 'inf' is not a number; write e.g."),
    "target is below a thousandth": ({"target": "100u"}, "target: '100u' must be at least 0.001"),
    "target is beyond the HPA": ({"target": "1e16"}, "target: '1e16' must be at least 0.001"),
    "activation is a word": ({"activation": "x"}, "activation: 'x' is not a number"),
    "activation is empty": ({"activation": ""}, "activation: is missing; give a number"),
    "activation is negative": ({"activation": "-0.1"}, "activation: '-0.1' must be at least 0"),
    "aggregate": (
        {"aggregate": "avg"},
        "aggregate: 'avg' is not an aggregate; use one of sum, mean, max, p95",
    ),
    "podSelector": (
        {"podSelector": "app in inf"},
        "podSelector: is not a label selector: found 'inf' at character 7, expected: '('; write",
    ),
    "podSelector is empty": (
        {"podSelector": " "},
        "podSelector: is empty; write e.g. app=inference, or leave the key out",
    ),
    "metricSelector": (
        {"metricSelector": "model=a b"},
        "metricSelector: is not a label selector: found 'b' at character 8",
    ),
    "a key that is none": ({"podselector": "a=b"}, "podselector: no such key; did you mean podSel"),
    "metric in capitals": (
        {"metric": "GPU_UTILIZATION"},
        "metric: no metric is named 'GPU_UTILIZATION'; did you mean gpu_utilization?",
    ),
    "a key in capitals": ({"Target": "70"}, "Target: no such key; did you mean target?"),
    "an empty key": ({"": "1"}, "an empty key: no such key; known keys: metric, "),
    "a metric that is far too long": (
        {"metric": "x" * 8_000},
        f"metric: no metric is named '{'x' * 200}…'; docs/metrics.md lists them all",
    ),
    "a number that is far too long": (
        {"target": "9" * 8_000},
        f"target: '{'9' * 200}…' is not a number; write e.g. \"70\"",
    ),
    "more metadata than is read": (
        {"scalerAddress": "x" * 8_192},
        "metadata: has 8234 bytes, at most 8192 are read; shorten its longest value",
    ),
    "characters of several bytes": (
        {"scalerAddress": "ä" * 4_096},
        "metadata: has 8234 bytes, at most 8192 are read; shorten its longest value",
    ),
    "more keys than are read": (
        {f"{number}FromEnv": "" for number in range(63)},
        "metadata: has 65 keys, at most 64 are read; leave out those that docs/keda.md",
    ),
    "a selector of too many parts": (
        {"podSelector": ",".join(f"k{number}" for number in range(65))},
        "podSelector: has more than 64 requirements and values; select by a label that they",
    ),
    "a selector of too many values": (
        {"metricSelector": f"model in ({','.join(f'm{number}' for number in range(65))})"},
        "metricSelector: has more than 64 requirements and values; select by a label that they",
    ),
    "a key like nothing": (
        {"xyz": "1"},
        "xyz: no such key; known keys: metric, target, activation, podSelector, aggregate, metric",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_metadata_is_rejected_with_key_and_fix(name: str) -> None:
    change, words = REFUSED[name]
    with pytest.raises(BadTrigger, match="^" + re.escape(words)):
        compile_trigger({**LEAST, **change}, KNOWN)


def test_kedas_own_keys_pass() -> None:
    own = {
        "scalerAddress": "gpu-metrics-adapter.gpu-metrics.svc:6000",
        "enableTLS": "true",
        "unsafeSsl": "false",
        "caCert": "-----BEGIN CERTIFICATE-----",
        "tlsClientCert": "c",
        "tlsClientKey": "k",
        "tlsCertFile": "/ca.crt",
        "tokenFromEnv": "TOKEN",
    }
    assert compile_trigger({**LEAST, **own}, KNOWN).metric == "gpu_utilization"


def test_defaults_are_a_sum_over_every_device_active_above_zero() -> None:
    trigger = compile_trigger(LEAST, KNOWN)
    assert (trigger.aggregate, trigger.activation, trigger.pods) == (Aggregate.SUM, 0.0, None)
    assert trigger.devices.empty


TARGETS = {"70": 70.0, "0.5": 0.5, "500m": 0.5, "2Gi": 2.0**31, " 70 ": 70.0, "7e1": 70.0}


@pytest.mark.parametrize("text", TARGETS)
def test_numbers_are_written_as_quantities(text: str) -> None:
    assert compile_trigger({**LEAST, "target": text}, KNOWN).target == TARGETS[text]


def test_selectors_have_the_whole_grammar() -> None:
    text = "app in (a,b),tier!=web,!canary,size>3"
    trigger = compile_trigger({**LEAST, "podSelector": text, "metricSelector": text}, KNOWN)
    assert trigger.pods is not None
    assert trigger.pods.matches({"app": "a", "size": "4"})
    assert not trigger.devices.matches({"app": "a", "size": "4", "canary": ""})


FORMS = {
    0.0: (0, 0.0),
    0.0001: (0, 0.0),
    0.4: (1, 0.4),
    70.0: (70, 70.0),
    87.5: (88, 87.5),
    -3.0: (0, 0.0),
}


@pytest.mark.parametrize("value", FORMS)
def test_the_whole_form_is_zero_only_where_the_exact_one_is(value: float) -> None:
    assert number(value) == FORMS[value]


@given(st.floats(min_value=0, max_value=1e12))
def test_a_number_survives_kedas_cut_to_thousandths(value: float) -> None:
    whole, exact = number(value)
    milli = int(exact * 1000)  # as older operators: int64(value * 1000)
    assert abs(milli - value * 1000) <= 1 + value * 1e-12
    assert math.isfinite(exact)
    assert (whole == 0) == (exact == 0)
