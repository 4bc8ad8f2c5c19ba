"""What the setting turns on: off, there is no such metric, and nothing learns."""

from __future__ import annotations

from typing import Any

from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.services import Services
from adapter.pipeline.store.outlook import NO_OUTLOOK
from adapter.server.serve.ahead import ahead_families, build_ahead
from adapter.server.serve.pipeline import PipelineSwitcher
from tests.adapter.server.ahead.service import EXPECTED, RUNNING


def settings(*, enabled: bool, interval: int = 30) -> Settings:
    values: dict[str, Any] = {"ahead": {"enabled": enabled}, "values": {"window": interval}}
    return Settings.model_validate(values)


def switcher() -> tuple[PipelineSwitcher, ObjectLookup]:
    objects = ObjectLookup(PodIndex(), Services(), Nodes())
    return PipelineSwitcher(Catalog(), objects), objects


async def test_at_rest_no_metric_is_expected_and_nothing_runs() -> None:
    pipelines, objects = switcher()
    off = settings(enabled=False)
    pipelines.use(off)
    assert RUNNING in pipelines.metrics
    assert EXPECTED not in pipelines.metrics
    assert build_ahead(off, pipelines, objects) is None
    assert pipelines.current.store.outlook is NO_OUTLOOK


async def test_on_each_store_looks_ahead() -> None:
    pipelines, objects = switcher()
    on = settings(enabled=True)
    pipelines.use(on)
    assert EXPECTED in pipelines.metrics
    learner = build_ahead(on, pipelines, objects)
    assert learner is not None
    assert pipelines.current.store.outlook is learner
    assert [family.name for family in ahead_families(learner)] == ["gma_ahead_loads"]
