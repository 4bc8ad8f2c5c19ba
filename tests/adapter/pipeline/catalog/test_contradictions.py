"""Laws of the catalogue: every 0 that scales a workload can be contradicted, by every entry."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog import triton
from adapter.pipeline.catalog.contradictions import Contradiction, Whole
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import Scope, Unit
from adapter.pipeline.catalog.vendors import CONTRADICTIONS, FIELDS, WHOLES
from tests.adapter.world import CATALOG, World, make_pod, said

POD = 'pod="p",namespace="ml",container="server"'
DEVICE = 'UUID="GPU-0",uuid="GPU-0",modelName="m"'
FIELD = {field.name: field for field in FIELDS}
SECONDS = 65
"""Longer than two readings of an exporter."""


def line(name: str, value: float, labels: str = f"{DEVICE},{POD}") -> str:
    """A sample of a field, as its exporter writes it."""
    field = FIELD[name]
    where = "".join(f',{label}="{text}"' for label, text in field.where if text)
    return f"{field.series or field.name}{{{labels}{where}}} {value!r}\n"


def served(field: Field, page: str) -> float | str:
    """What is served of a field that has a metric of its own, or of a neutral metric with it."""
    world = World(make_pod("p", node="n"))
    for time in range(100, 101 + SECONDS, 5):
        world.scrape(page, float(time), node="n")
    metric = field.name
    if field.series:
        metric = next(
            name
            for name, one in CATALOG.metrics.items()
            if name.startswith("gpu_") and any(f.fields == (field.name,) for f in one.formulas)
        )
    return said(world.read("p", metric, float(100 + SECONDS)))


def limit(entry: Contradiction) -> float:
    return min(entry.mean, entry.least)


@pytest.mark.parametrize("entry", CONTRADICTIONS, ids=lambda entry: f"{entry.zero} by {entry.by}")
def test_an_entry_contradicts_a_zero_from_its_limit_on(entry: Contradiction) -> None:
    zero = line(entry.zero, 0.0)
    below, above = 0.999 * limit(entry), 1.001 * limit(entry)  # a mean is rounded
    assert served(FIELD[entry.zero], zero + line(entry.by, below)) == 0.0
    assert isinstance(served(FIELD[entry.zero], zero + line(entry.by, above)), str)


@pytest.mark.parametrize("entry", CONTRADICTIONS, ids=lambda entry: f"{entry.zero} by {entry.by}")
def test_evidence_is_compared_only_with_a_zero(entry: Contradiction) -> None:
    page = line(entry.zero, FIELD[entry.zero].high / 50) + line(entry.by, FIELD[entry.by].high)
    assert isinstance(served(FIELD[entry.zero], page), float)


@pytest.mark.parametrize("entry", WHOLES, ids=lambda entry: f"{entry.part} of {entry.whole}")
def test_a_whole_is_in_the_unit_of_its_parts(entry: Whole) -> None:
    of = {Unit.PERCENT: 1.0, Unit.MEBIBYTES: 1024.0**2, Unit.BYTES: 1.0}
    part, whole = FIELD[entry.part], FIELD[entry.whole]
    assert entry.factor == of[whole.unit] / of[part.unit]
    assert part.kind is whole.kind


def test_every_utilization_that_is_scaled_on_can_be_contradicted() -> None:
    scaled = {name for f in CATALOG.metrics["gpu_utilization"].formulas for name in f.fields}
    covered = {entry.zero for entry in CONTRADICTIONS} | {entry.part for entry in WHOLES}
    # Triton's page has nothing but the utilization, of devices that no exporter reports.
    assert scaled - covered == {triton.UTIL}


def test_watts_degrees_and_clocks_are_never_zero() -> None:
    units = {Unit.WATTS, Unit.MILLIWATTS, Unit.CELSIUS, Unit.MEGAHERTZ}
    measured = [f for f in FIELDS if f.unit in units and f.scope is Scope.DEVICE]
    assert [field.name for field in measured if not field.positive] == []


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.positive], ids=lambda field: field.name
)
def test_a_zero_of_a_field_that_is_never_zero_is_left_out(field: Field) -> None:
    assert served(field, line(field.name, 0.0)) == "zero_of_unsupported_field"
    assert isinstance(served(field, line(field.name, field.high)), float)


AMD = f'gpu_uuid="u",gpu_id="0",hostname="n",{POD}'
UNSUPPORTED = {
    "AMD's edge temperature beside the junction's": (
        f"gpu_edge_temperature{{{AMD}}} 0\ngpu_junction_temperature{{{AMD}}} 61\n",
        "gpu_temperature_celsius",
        61.0,
    ),
    "AMD's package power beside the average": (
        f"gpu_package_power{{{AMD}}} 0\ngpu_average_package_power{{{AMD}}} 305\n",
        "gpu_power_watts",
        305.0,
    ),
    "AMD's powers, all of them 0": (
        f"gpu_package_power{{{AMD}}} 0\ngpu_average_package_power{{{AMD}}} 0\n",
        "gpu_power_watts",
        "zero_of_unsupported_field",
    ),
    "Intel's GPU sensor beside the package's": (
        (
            f'hw_power_watts{{hw_id="u",{POD},hw_sensor_location="gpu"}} 0\n'
            f'hw_power_watts{{hw_id="u",{POD},hw_sensor_location="package"}} 130\n'
        ),
        "gpu_power_watts",
        130.0,
    ),
    "a device of which nothing is supported is still a device": (
        f"DCGM_FI_DEV_SM_CLOCK{{{DEVICE},{POD}}} 0\n",
        "gpu_count",
        1.0,
    ),
}


@pytest.mark.parametrize(("page", "metric", "expected"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_the_sibling_of_an_unsupported_field_is_used(
    page: str, metric: str, expected: float | str
) -> None:
    world = World(make_pod("p", node="n", gpus={"amd.com/gpu": 1}))
    world.scrape(page, 100.0, node="n")
    assert said(world.read("p", metric, 100.0)) == expected
