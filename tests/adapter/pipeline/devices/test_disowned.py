"""Pods that samples appear to name because a scrape added the labels of its target."""

from __future__ import annotations

import pytest

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from tests.adapter.world import World, make_pod


@pytest.mark.parametrize("turned", [False, True])
def test_the_reason_does_not_depend_on_the_order_of_the_samples(*, turned: bool) -> None:
    """Labels that were read before the target was known do not look like the target's."""
    world = World(make_pod("dcgm-0", gpus={}))
    scraped = {"instance": "node-0:9400", "pod": "dcgm-0", "namespace": "ml"}
    old, new = ({**scraped, "UUID": f"GPU-{number}"} for number in range(2))
    for time, sets in ((15.0, [old]), (30.0, [new, old] if turned else [old, new])):
        samples = [Sample("DCGM_FI_DEV_GPU_UTIL", labels, 1.0, time) for labels in sets]
        world.store.ingest(ScrapeResult("e", None, samples, time, {}))
    disowned = world.store._exporters["e"].disowned
    assert disowned == {PodRef("ml", "dcgm-0"): Mismatch.SELF_ATTRIBUTION}
