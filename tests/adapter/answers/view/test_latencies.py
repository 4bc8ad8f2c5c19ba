"""Latencies in the view API: shown with their precision, and only while somebody else asks."""

from __future__ import annotations

from adapter.pipeline.catalog.seriesdemand import PATIENCE
from tests.adapter.answers.api.test_latencies import TTFT, Servers, page
from tests.adapter.answers.view.viewer import Viewer, numbers, reasons
from tests.adapter.world import World, make_pod

P90 = f"{TTFT}_p90"


def served(*hits: int) -> Servers:
    world = Servers("a")
    world.serve("a", page(0, 0, 0, 0, 0, 0), 1000.0)
    world.serve("a", page(*hits, total=12.0), 1005.0)
    return world


def test_a_latency_is_shown_with_its_precision() -> None:
    pods = Viewer(served(5, 5, 0, 10, 0, 0)).pods
    (shown,) = [metric for metric in pods.get("a", 1006.0)["metrics"] if metric["metric"] == P90]
    assert (shown["number"], shown["unit"]) == (0.9, "s")
    assert shown["precision"] == "between 0.5 s and 1 s; 20 in 5 s"
    assert pods.row("a", 1006.0)["First-Token"] == "0.9s"


def test_why_a_latency_is_missing_is_shown_with_the_number_of_requests() -> None:
    pods = Viewer(served(3, 0, 0, 0, 0, 0)).pods
    pod = pods.get("a", 1006.0)
    assert reasons(pod)[P90] == "too_few_requests"
    (why,) = [row for row in pod["absent"] if row["reason"] == "too_few_requests"]
    assert "3 in 5 s" in why["message"]
    assert "First-Token" not in pods.row("a", 1006.0)


def test_a_look_neither_starts_the_reading_nor_keeps_it_up() -> None:
    world = served(5, 5, 0, 10, 0, 0)
    viewer = Viewer(world)
    for now in (1000.0 + PATIENCE / 2, 1000.0 + PATIENCE + 120.0):
        world.store.demand.forget(now)
        viewer.pods.get("a", now)
        viewer.pods.row("a", now)
    assert world.store.demand.since(P90, "ml") is None
    assert P90 not in {**numbers(viewer.pods.get("a", now)), **reasons(viewer.pods.get("a", now))}


def test_a_namespace_in_which_nobody_asks_has_none() -> None:
    world = World(make_pod("a", gpus={}))
    for time in (1000.0, 1005.0):
        world.scrape(page(0, 0, 0, 9, 0, 0), time, origin="u", pod=("ml", "a"), serves=True)
    pods = Viewer(world).pods
    assert "First-Token" not in pods.row("a", 1006.0)
    assert not any(name.startswith(TTFT) for name in reasons(pods.get("a", 1006.0)))
    assert world.store.demand.since(P90, "ml") is None
