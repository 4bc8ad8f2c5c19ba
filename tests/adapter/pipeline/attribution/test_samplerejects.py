"""What was left out of the samples of a pod is in the reason of the pod."""

from __future__ import annotations

import pytest

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.exposition.line import MAX_TEXT
from tests.adapter.world import World, make_pod, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
T = 100.0
LONG = "x" * (MAX_TEXT + 1)
MANY = ",".join(f'%(name)s{number}="x"' for number in range(90))
"""Labels whose names begin with ``name``."""


def absent(page: str, *, time: float = T) -> Absence:
    """Why the pod has no value after two reads of a page."""
    world = World(make_pod("p", node="n1"), make_pod("q", node="n1"))
    for now in (T - 5, T):
        world.scrape(page, now, node="n1", pod=("gpu", "dcgm-1"))
    absence = world.read("p", "gpu_utilization", time)
    assert isinstance(absence, Absence)
    return absence


def line(labels: str, value: str = "87") -> str:
    return f'{UTIL}{{{labels},namespace="ml",pod="p"}} {value}\n'


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ('modelName="H100"', "no_device"),
        (f'UUID="{LONG}",gpu="0"', "label_too_long"),
        (f'{MANY % {"name": "a"}},UUID="u",{MANY % {"name": "b"}}', "too_many_labels"),
    ],
)
def test_samples_that_name_the_pod_and_no_device_are_its_reason(labels: str, reason: str) -> None:
    absence = absent(line(labels))
    assert (absence.reason, absence.detail) == ("samples_rejected", f"{reason} on http://exporter")
    assert absence.exporter == ("gpu", "dcgm-1")


def test_samples_of_another_pod_are_not_the_reason() -> None:
    other = row(UTIL, 87, "q") + 'x{pod="q",namespace="ml"} 1\n'
    assert absent(other).reason == "device_named_for_other_pod"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("N/A", f"{UTIL} was left out as bad_value"),
        ("2147483632", f"{UTIL} 2.14748e+09 was left out as sentinel"),
        ("NaN", f"{UTIL} was left out as not_finite"),
        ("250", f"{UTIL} 250 was left out as out_of_range"),
    ],
)
def test_a_number_that_was_left_out_is_named_with_its_reason(value: str, said: str) -> None:
    absence = absent(row(UTIL, value, "p"))
    assert (absence.reason, absence.detail) == ("no_value", f"GPU-0; {said}")
    beside = absent(row(UTIL, value, "p") + row("DCGM_FI_DEV_GPU_TEMP", 40, "p"))
    assert (beside.reason, beside.detail) == (absence.reason, absence.detail)


def test_a_number_of_another_metric_is_not_the_reason() -> None:
    absence = absent(row("DCGM_FI_DEV_GPU_TEMP", "N/A", "p") + row(UTIL, "NaN", "p"))
    assert absence.detail == f"GPU-0; {UTIL} was left out as not_finite"


@pytest.mark.parametrize(
    ("code", "said"),
    [(79, "XID 79 (GPU has fallen off the bus)"), (13, "XID 13"), (0, "")],
)
def test_an_xid_error_of_the_device_is_named(code: int, said: str) -> None:
    absence = absent(row("DCGM_FI_DEV_XID_ERRORS", code, "p") + row("DCGM_FI_DEV_GPU_TEMP", 1, "p"))
    assert absence.reason == "metric_not_exported"
    assert absence.detail.endswith(f"device GPU-0 reports {said}" if said else "GPU-0")


def test_an_xid_error_explains_nothing_beside_a_value() -> None:
    world = World(make_pod("p", node="n1"))
    world.scrape(row("DCGM_FI_DEV_XID_ERRORS", 79, "p") + row(UTIL, 87, "p"), T, node="n1")
    assert world.value("p", "gpu_utilization", T) == 87


def test_a_reject_that_is_past_the_age_limit_explains_nothing() -> None:
    world = World(make_pod("p", node="n1"))
    world.scrape(row(UTIL, "N/A", "p") + row("DCGM_FI_DEV_GPU_TEMP", 40, "p"), T, node="n1")
    later = T + 2 * world.options.oldest
    world.scrape(row("DCGM_FI_DEV_GPU_TEMP", 40, "p"), later, node="n1")
    absence = world.read("p", "gpu_utilization", later)
    assert isinstance(absence, Absence)
    assert "bad_value" not in absence.detail


def test_lines_without_a_number_are_counted_once() -> None:
    world = World(make_pod("p", node="n1"))
    world.scrape(row(UTIL, "N/A", "p"), T, node="n1")
    assert dict(world.store.rejects.totals) == {"bad_value": 1}
