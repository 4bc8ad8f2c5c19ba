"""All settings: typed, frozen and documented.

Sources, in order of precedence: command-line flags, environment variables (``GMA_`` and the path of
the key joined by ``__``: ``GMA_SOURCE__KIND=prometheus``), the YAML file, the defaults.
The docstring below a field is its documentation (``make docs`` writes ``docs/settings.md`` from
it). Durations are seconds or Go-style text (``5s``, ``1m30s``).
"""

from __future__ import annotations

from pydantic import model_validator

from adapter.config.settings.access import AuthenticationSettings, AuthorizationSettings
from adapter.config.settings.accounting import AccountingSettings
from adapter.config.settings.ahead import AheadSettings
from adapter.config.settings.cluster import ClusterSettings
from adapter.config.settings.delegation import DelegationSettings
from adapter.config.settings.external import ExternalSettings
from adapter.config.settings.keda import KedaSettings
from adapter.config.settings.log import LogSettings
from adapter.config.settings.memory import MemorySettings
from adapter.config.settings.metrics import MetricSettings
from adapter.config.settings.nodepool import NodepoolSettings
from adapter.config.settings.recording import RecordingSettings
from adapter.config.settings.rules import RuleSettings
from adapter.config.settings.server import ServerSettings
from adapter.config.settings.sharing import SharingSettings
from adapter.config.settings.source import SourceSettings
from adapter.config.settings.types import Section
from adapter.config.settings.values import ValueSettings
from adapter.config.settings.view import ViewSettings
from adapter.pipeline.devices.options import MAX_SAMPLES


class Settings(Section):
    """The whole configuration."""

    server: ServerSettings = ServerSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    cluster: ClusterSettings = ClusterSettings()
    source: SourceSettings = SourceSettings()
    values: ValueSettings = ValueSettings()
    metrics: tuple[MetricSettings, ...] = ()
    """Metrics of your own, in addition to the metrics of the catalogue."""
    rules: RuleSettings = RuleSettings()
    sharing: SharingSettings = SharingSettings()
    external: ExternalSettings = ExternalSettings()
    memory: MemorySettings = MemorySettings()
    delegation: DelegationSettings = DelegationSettings()
    view: ViewSettings = ViewSettings()
    keda: KedaSettings = KedaSettings()
    accounting: AccountingSettings = AccountingSettings()
    ahead: AheadSettings = AheadSettings()
    recording: RecordingSettings = RecordingSettings()
    nodepool: NodepoolSettings = NodepoolSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _check_store_use(self) -> Settings:
        kind, url = self.source.kind, self.source.prometheus.url
        past = self.nodepool.history.prometheus_url
        used = kind == "prometheus" or self.rules.file is not None or url == past
        if url is not None and not used:
            raise ValueError(
                f"source.prometheus.url (--prometheus-url) is set, but source.kind is {kind} and "
                "rules.file is not set: set the kind to prometheus (--source prometheus), or "
                "remove the url"
            )
        if self.rules.file is not None and self.source.prometheus.url is None:
            raise ValueError(
                "rules.file needs source.prometheus.url, the store with the series of the rules"
            )
        if self.rules.resource_metrics and self.rules.file is None:
            raise ValueError("rules.resource_metrics needs rules.file, which has the resourceRules")
        if self.rules.max_age < self.rules.relist_interval:
            raise ValueError("rules.max_age must be at least rules.relist_interval")
        return self

    @model_validator(mode="after")
    def _check_windows(self) -> Settings:
        """Reject a window that is longer than the samples that the adapter keeps."""
        source = self.source
        interval = {
            "scrape": source.scrape.interval,
            "prometheus": source.prometheus.scrape_interval,
        }.get(source.kind)
        windows = {f"metrics.{row.name}.window": row.window for row in self.metrics if row.window}
        for key, window in ({"values.window": self.values.window} | windows).items():
            if interval is not None and window > interval * MAX_SAMPLES:
                raise ValueError(
                    f"{key}: {window:g} s need more than {MAX_SAMPLES} samples at one sample in "
                    f"{interval:g} s; set at most {interval * MAX_SAMPLES:g}, or a longer "
                    f"source.{source.kind} interval"
                )
        return self
