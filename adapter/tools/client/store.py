"""The Prometheus of a tool: a URL, or the store of a configuration of `serve`, with its login."""

from __future__ import annotations

from pathlib import Path

from adapter.config.process.config import ConfigError, load
from adapter.config.process.storelogin import store_options
from adapter.config.settings.prometheus import PrometheusSettings
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.tools.client.errors import ClientError


def store_settings(url: str, config: Path | None, option: str) -> PrometheusSettings | None:
    """Return the settings of the store; None without a URL and a configuration.

    Args:
        url: of the query API; empty for that of the configuration.
        config: a configuration of `serve`.
        option: the command's option of the URL, for messages.

    Raises:
        ClientError: the URL or the configuration cannot be used.
    """
    if not (url or config):
        return None
    overrides = {"source.kind": "prometheus", "source.prometheus.url": url or None}
    try:
        return load(config, overrides).source.prometheus
    except ConfigError as error:
        text = "; ".join(error.problems).replace("--prometheus-url", option)
        raise ClientError(text) from None


def read_store_options(settings: PrometheusSettings) -> PrometheusOptions:
    """Return how the store is reached.

    Raises:
        ClientError: a file of its login cannot be used.
    """
    try:
        return store_options(settings)
    except CredentialError as error:
        raise ClientError(str(error)) from None
