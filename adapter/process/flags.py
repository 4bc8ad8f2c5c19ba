"""Flags of the commands that take settings, and the settings that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PATHS: Final = {
    "host": "server.host",
    "port": "server.port",
    "kubeconfig": "cluster.kubeconfig",
    "context": "cluster.context",
    "pods_file": "cluster.pods_file",
    "source": "source.kind",
    "prometheus_url": "source.prometheus.url",
    "apply": "nodepool.apply",
    "log_level": "log.level",
    "log_format": "log.format",
}
_OTHERS: Final = frozenset({"config", "check", "once"})
"""Flags that are no settings."""


def named(given: Mapping[str, object]) -> dict[str, object]:
    """Path of a setting -> what its flag was given; None for a flag that was not.

    Args:
        given: a command's parameters, as click names them.
    """
    return {_PATHS[flag]: value for flag, value in given.items() if flag not in _OTHERS}
