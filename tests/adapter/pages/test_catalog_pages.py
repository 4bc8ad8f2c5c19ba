"""The own pages cover the catalogue: a field or a kind of server without a page fails here.

A table is complete (``test_pages.py``), so a value that it lists is a value that its page yields.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.serverkinds import KINDS
from adapter.pipeline.catalog.table import _spellings
from adapter.pipeline.catalog.vendors import VENDORS
from tests.adapter.pages.scene import Scene, listed
from tests.adapter.pages.tables import own_scenes
from tests.adapter.world import CATALOG, OWN_PAGES

OWN = own_scenes()


def _values(scene: Scene) -> Iterator[str]:
    """The metrics for which a table gives a value, for each pod and node."""
    for lines in scene.says.values():
        yield from listed(lines)


VALUES = frozenset(name for scene in OWN.values() for name in _values(scene))


SAMPLES = tuple(
    line for path in OWN_PAGES.rglob("*.prom") for line in path.read_text().splitlines()
)


def _has_a_page(field: Field) -> bool:
    """Whether a table has a value of the field, or a page has a sample of it.

    A field without an API metric of its own is behind the neutral metrics: its value in a table
    is theirs, so only its samples show that a page has it.
    """
    if field.name in CATALOG.metrics:
        return field.name in VALUES
    if field.on_demand:
        every = [spelling.series for spelling in _spellings(field)]
        return any(line.startswith((f"{name}{{", f"{name} ")) for line in SAMPLES for name in every)
    labels = [f'{label}="{value}"' for label, value in field.where if value]
    return any(
        line.startswith(f"{field.series}{{") and all(label in line for label in labels)
        for line in SAMPLES
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_field_of_a_vendor_is_on_an_own_page(vendor: str) -> None:
    assert [field.name for field in VENDORS[vendor] if not _has_a_page(field)] == []


def test_every_neutral_metric_has_an_own_page_that_yields_a_value() -> None:
    measured = {metric.name for metric in CATALOG.neutral if not metric.promised}
    assert measured - VALUES == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_server_has_an_own_page_that_yields_its_queue(kind: str) -> None:
    assert any(scene.kind == kind and KINDS[kind].queue in _values(scene) for scene in OWN.values())


def test_a_table_names_only_kinds_of_servers_that_the_catalogue_has() -> None:
    assert {scene.kind for scene in OWN.values()} <= {"", *KINDS}
