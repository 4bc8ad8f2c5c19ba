"""Properties of every answer for any input, checked by the tests that mutate or generate pages."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Metric, Unit
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.assignment import assignment
from adapter.pipeline.exposition.samples import Sample
from apiservice.labels.selector import EVERYTHING
from tests.adapter.world import World, make_pod

_HIGHEST = {Unit.PERCENT: 100.0, Unit.RATIO: 1.0}
_ROUNDING = 1 + 1e-12


def pods_named(rows: Iterable[Sample]) -> list[Pod]:
    """The pods that rows name, each as one that holds a GPU and runs."""
    named = {claimed.pod for row in rows if (claimed := assignment(row.labels, None)) is not None}
    return [make_pod(ref.name, namespace=ref.namespace) for ref in sorted(named)]


def broken(world: World, catalog: Catalog, now: float) -> list[str]:
    """Every answer about every pod and node that breaks the promise; empty if none does."""
    breaches = []
    snapshot = world.store.snapshot
    nodes = snapshot.nodes()
    for name, metric in catalog.metrics.items():
        answers = [
            (p.ref.name, snapshot.pod(p, name, EVERYTHING, now)) for p in world.pods.values()
        ]
        answers += [(node, snapshot.node(node, name, EVERYTHING, now)) for node in nodes]
        breaches += [
            f"{name} of {whose}: {answer}"
            for whose, answer in answers
            if not kept(answer, metric, world.options.oldest, now)
        ]
    return breaches


def kept(answer: Reading | Absence, metric: Metric, oldest: float, now: float) -> bool:
    """Finite, in range, young enough, of some device; or a reason why there is none."""
    if isinstance(answer, Absence):
        return bool(answer.reason)
    highest = _HIGHEST.get(metric.unit, math.inf) if not metric.of_request else math.inf
    return (
        math.isfinite(answer.value)
        and 0 <= answer.value <= highest * _ROUNDING
        and bool(answer.devices)
        and all(0 <= part.value <= highest * _ROUNDING for part in answer.devices)
        and now - oldest < answer.time <= now
        and answer.expires == answer.time + oldest
    )
