"""Exporters whose pages fail in every way at once, under a steady load of HPA-like requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.e2e.adapterprocess import QUICK
from tests.e2e.badpages import BadPage
from tests.e2e.faultnodes import faulty_nodes
from tests.e2e.stage import Stage
from tests.e2e.traffic import Traffic, controller
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGES = {
    "hangs": BadPage.HANGS,
    "drips": BadPage.DRIPS,
    "is-cut": BadPage.IS_CUT,
    "never-ends": BadPage.NEVER_ENDS,
    "is-refused": None,
}
"""How the page fails; None: nobody listens any more."""
WELL = "page-is-well"


class Seen(NamedTuple):
    """What came of it."""

    traffic: Traffic
    sizes: dict[str, list[int]]
    same_process: bool


@pytest.fixture(scope="module")
def seen(running_stage: Stage) -> Iterator[Seen]:
    """All pages failed for longer than a value may be old, while the work went away."""
    stage, truth = running_stage, Truth(float(QUICK["age_limit"].rstrip("s")))
    before, stage.load.used = stage.load.used, truth.used
    spaces = {f"page-{name}": f"node-{name}" for name in PAGES}
    try:
        with faulty_nodes(stage, list(spaces.values())) as exporters:
            for namespace, node in {**spaces, WELL: "node-a"}.items():
                stage.workload(namespace, 2, 120, node=node)
            for namespace in (*spaces, WELL):
                stage.wait_size(namespace, 2)
            pid = stage.adapter.process.pid
            clients = {space: controller(stage.plane, space, truth) for space in (*spaces, WELL)}
            with Traffic(clients) as traffic:
                traffic.wait_pods(2)
                for name, bad in PAGES.items():
                    exporter = exporters[f"node-{name}"]
                    exporter.bad = bad
                    if bad is None:
                        exporter.stop()
                traffic.wait_pods(0, *spaces)
                traffic.wait_pods(2, WELL)
                for namespace in spaces:
                    stage.load.set(namespace, 10)
                for namespace in spaces:
                    stage.wait_failures(namespace, 2)
                traffic.wait_pods(2, WELL)
                for name, bad in PAGES.items():
                    stage.load.set(f"page-{name}", 120)
                    exporter = exporters[f"node-{name}"]
                    exporter.bad = None
                    if bad is None:
                        exporter.start()
                traffic.wait_pods(2)
                traffic.wait_more()
            same = stage.adapter.process.running() and stage.adapter.process.pid == pid
            sizes = {space: list(stage.sizes[space]) for space in (*spaces, WELL)}
            yield Seen(traffic, sizes, same)
            stage.clear()
    finally:
        stage.load.used = before


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that(seen: Seen, page: str) -> None:
    """Its pods have no value after the age limit, their HPA holds, and all comes back."""
    namespace = f"page-{page}"
    assert not seen.traffic.failed(namespace)
    assert seen.sizes[namespace] == [2]


def test_pods_of_other_nodes_are_not_affected(seen: Seen) -> None:
    """They have their values while the others have none."""
    assert not seen.traffic.failed(WELL)
    assert seen.sizes[WELL] == [2]


def test_no_served_value_was_wrong(seen: Seen) -> None:
    assert not seen.traffic.wrong()
    assert seen.same_process
