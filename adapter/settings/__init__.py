"""Every setting: typed, frozen, documented; the only reader of files and environment.

Sources, strongest first: command-line flags, environment (``GMA_`` and the key's path
joined by ``__``: ``GMA_SOURCE__KIND=prometheus``), the YAML file, the defaults here.
The docstring under a field is its documentation everywhere (``docs/settings.md`` is
generated from it). Durations are seconds or Go-style text (``5s``, ``1m30s``).
"""

from __future__ import annotations

from pydantic import model_validator

from adapter.settings.access import AuthenticationSettings, AuthorizationSettings
from adapter.settings.cluster import ClusterSettings
from adapter.settings.external import ExternalSettings
from adapter.settings.keda import KedaSettings
from adapter.settings.log import LogSettings
from adapter.settings.metrics import MetricRow
from adapter.settings.nodepool import NodepoolSettings
from adapter.settings.server import ServerSettings
from adapter.settings.sharing import SharingSettings
from adapter.settings.source import SourceSettings
from adapter.settings.types import Section
from adapter.settings.values import ValueSettings
from adapter.telemetryoptions import MAX_SAMPLES


class Settings(Section):
    """The whole configuration."""

    server: ServerSettings = ServerSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    cluster: ClusterSettings = ClusterSettings()
    source: SourceSettings = SourceSettings()
    values: ValueSettings = ValueSettings()
    metrics: tuple[MetricRow, ...] = ()
    """Metrics of your own, beside the catalogue's."""
    sharing: SharingSettings = SharingSettings()
    external: ExternalSettings = ExternalSettings()
    keda: KedaSettings = KedaSettings()
    nodepool: NodepoolSettings = NodepoolSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _windows_are_kept(self) -> Settings:
        """A mean over fewer samples than its window holds would not be what it says."""
        source = self.source
        interval = {
            "scrape": source.scrape.interval,
            "prometheus": source.prometheus.scrape_interval,
        }.get(source.kind)
        own = {f"metrics.{row.name}.window": row.window for row in self.metrics if row.window}
        for key, window in ({"values.window": self.values.window} | own).items():
            if interval is not None and window > interval * MAX_SAMPLES:
                raise ValueError(
                    f"{key}: {window:g} s are more than the {MAX_SAMPLES} samples that are kept at "
                    f"one in {interval:g} s; set at most {interval * MAX_SAMPLES:g}, or a longer "
                    f"source.{source.kind} interval"
                )
        return self
