"""Build what answers the metrics APIs: the catalogue's metrics, and those of rules beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adapter.api.external import GpuExternalMetrics
from adapter.api.provider import GpuMetricsProvider
from adapter.cluster.lookup import ObjectLookup
from adapter.rules.beside import CustomBeside, ExternalBeside
from adapter.rules.service import RuleService
from adapter.serve.build import Loop
from adapter.serve.pipeline import PipelineSwitcher
from adapter.serve.rules import build_rules
from adapter.settings import Settings
from apiservice.documents.health import Check
from apiservice.provider import CustomMetricsProvider, ExternalMetricsProvider


class Providers(NamedTuple):
    """The providers of one process."""

    gpu: GpuMetricsProvider
    """The catalogue's custom metrics."""
    custom: CustomMetricsProvider
    external: ExternalMetricsProvider | None
    """None if external metrics are off."""
    rules: RuleService | None
    """None without a rules file."""

    @property
    def loops(self) -> Sequence[Loop]:
        """What keeps the providers current."""
        return () if self.rules is None else (self.rules.run,)

    @property
    def checks(self) -> Sequence[Check]:
        """What readiness waits for: the first discovery of series, successful or not."""
        rules = self.rules
        if rules is None:
            return ()
        waits = "the series of the rules have not been discovered yet"
        return (Check("rules", lambda: None if rules.settled else waits, expected=True),)


def build_providers(
    settings: Settings, pipelines: PipelineSwitcher, objects: ObjectLookup, client: Any
) -> Providers:
    """Return the providers.

    Raises:
        ConfigError: the rules file cannot be used at all, or a credential cannot be used.
    """
    gpu = GpuMetricsProvider(pipelines, pipelines, objects)
    custom: CustomMetricsProvider = gpu
    external: ExternalMetricsProvider | None = None
    if settings.external.enabled:
        external = GpuExternalMetrics(pipelines, pipelines, objects, gpu.absent)
    rules = build_rules(settings, objects, client)
    if rules is not None:
        prefer = settings.rules.prefer == "rules"
        beside = CustomBeside(gpu, rules.custom, prefer_rules=prefer)
        rules.shared["custom"] = lambda: beside.both
        custom = beside
        if external is not None:
            both = ExternalBeside(external, rules.external, prefer_rules=prefer)
            rules.shared["external"] = lambda: both.both
            external = both
    return Providers(gpu, custom, external, rules)
