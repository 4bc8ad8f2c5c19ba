"""Writes the defaults of the settings that the chart's templates use."""

from __future__ import annotations

from typing import Any, Final

import yaml

from adapter.config.settings import Settings

_KEYS: Final = (
    *("server.port", "server.drain", "server.grace", "keda.port"),
    *("authentication.configmap", "authentication.token_review"),
    *("authorization.subject_access_review", "cluster.nodes", "cluster.services"),
    *("ahead.enabled", "source.kind", "source.prometheus.auth.kind"),
    "source.scrape.inference.enabled",
    *("nodepool.port", "nodepool.provisioning_method", "nodepool.jobs", "nodepool.deletion_cost"),
    *("nodepool.lease.name", "nodepool.placeholder.image", "nodepool.placeholder.priority_class"),
)


def page() -> str:
    """The whole file."""
    defaults = Settings().model_dump(mode="json")
    chosen: dict[str, Any] = {}
    for key in _KEYS:
        place, value = chosen, defaults
        *sections, leaf = key.split(".")
        for section in sections:
            place, value = place.setdefault(section, {}), value[section]
        place[leaf] = value[leaf]
    return "# Written by `make docs` from adapter/config/settings.\n" + yaml.safe_dump(chosen)
