"""What a migration applies: Helm values, and the manifests of APIServices."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from adapter.tools.client.access import Json
from adapter.tools.migrate.arguments import Taken, settings_of
from adapter.tools.migrate.peer import PeerAdapter
from adapter.tools.migrate.rulereport import RuleReport
from apiservice.runtime.yamltypes import Dumper

CONFIGMAP: Final = "prometheus-adapter-rules"
"""Our copy of the ConfigMap: the original ends with the release of prometheus-adapter."""
KEY: Final = "config.yaml"
_KEEP: Final = {"helm.sh/resource-policy": "keep"}
"""Helm then leaves an object alone that a release no longer contains."""


def helm_values(rules: RuleReport, rows: Sequence[Taken], *, resource: bool) -> dict[str, Any]:
    """Return the values of our chart.

    Args:
        rules: of the configuration.
        rows: what becomes of prometheus-adapter's arguments and pods.
        resource: whether prometheus-adapter serves ``metrics.k8s.io``.
    """
    config: dict[str, Any] = {}
    for section, content in settings_of(rows).items():
        config[section] = {**config.get(section, {}), **content}
    values: dict[str, Any] = {
        "rules": {"existingConfigMap": {"name": CONFIGMAP, "key": KEY}},
        "config": config,
    }
    if rules.external:
        values["externalMetrics"] = {"enabled": True}
    if resource and rules.resource:
        values["resourceMetrics"] = {"enabled": True}
    for key, value in ((key, value) for row in rows for key, value in row.values.items()):
        known = values.get(key, [])
        values[key] = (
            [*known, *(entry for entry in value if entry not in known)]
            if isinstance(value, list)
            else value
        )
    return values


def values_text(values: Mapping[str, Any], rows: Sequence[Taken] = ()) -> str:
    """Return values as a file; comments name what the user must do for an argument."""
    todo = [f"{row.argument}: {row.effect}" for row in rows if row.todo]
    comments = [f"# {text}\n" for text in ("values.yaml", *todo, *without_url(rows))]
    return "".join([*comments, yaml.dump(dict(values), Dumper=Dumper, sort_keys=True)])


def without_url(rows: Sequence[Taken]) -> list[str]:
    """Return what to do if the URL of Prometheus is not known."""
    if any("source.prometheus.url" in row.settings for row in rows):
        return []
    return ["the URL of Prometheus is not known: set config.source.prometheus.url in the values"]


def moved_apiservices(peer: PeerAdapter, namespace: str, name: str, ca: bytes) -> list[Json]:
    """Return the APIServices of prometheus-adapter as our release has them.

    Args:
        peer: the installation.
        namespace: of our release.
        name: of our release.
        ca: PEM text.
    """
    rows = []
    for api in peer.own:
        meta = {
            "name": api.name,
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            # prometheus-adapter's release must not delete it; ours takes it over.
            "annotations": {
                **_KEEP,
                "meta.helm.sh/release-name": name,
                "meta.helm.sh/release-namespace": namespace,
            },
        }
        spec = _spec(api.manifest)
        spec.pop("insecureSkipTLSVerify", None)
        spec["service"] = {"namespace": namespace, "name": name, "port": 443}
        spec["caBundle"] = base64.b64encode(ca).decode()
        rows.append(_apiservice(meta, spec))
    return rows


def current_apiservices(peer: PeerAdapter) -> list[Json]:
    """Return the APIServices of prometheus-adapter as they are, for the way back."""
    rows = []
    for api in peer.own:
        old = api.manifest["metadata"]
        meta = {"labels": old["labels"]} if old.get("labels") else {}
        # Otherwise our release, which has these APIServices by then, would delete them.
        meta["annotations"] = (old.get("annotations") or {}) | _KEEP
        rows.append(_apiservice({"name": api.name, **meta}, _spec(api.manifest)))
    return rows


def manifests_text(rows: Sequence[Json]) -> str:
    """Return manifests as a file for kubectl."""
    return str(yaml.dump_all(rows, Dumper=Dumper, sort_keys=True))


def _spec(manifest: Json) -> Json:
    return dict(manifest["spec"])


def _apiservice(meta: Json, spec: Json) -> Json:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": meta,
        "spec": spec,
    }
