"""Every setting: typed, frozen, documented; the only reader of files and environment.

Sources, strongest first: command-line flags, environment (``GMA_`` and the key's path
joined by ``__``: ``GMA_SOURCE__KIND=prometheus``), the YAML file, the defaults here.
The docstring under a field is its documentation everywhere (``docs/settings.md`` is
generated from it). Durations are seconds or Go-style text (``5s``, ``1m30s``).
"""

from __future__ import annotations

from adapter.settings.access import AuthenticationSettings, AuthorizationSettings
from adapter.settings.cluster import ClusterSettings
from adapter.settings.external import ExternalSettings
from adapter.settings.keda import KedaSettings
from adapter.settings.log import LogSettings
from adapter.settings.metrics import MetricRow
from adapter.settings.server import ServerSettings
from adapter.settings.sharing import SharingSettings
from adapter.settings.source import SourceSettings
from adapter.settings.types import Section
from adapter.settings.values import ValueSettings


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
    log: LogSettings = LogSettings()
