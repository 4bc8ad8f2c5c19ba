"""A ServiceMonitor's endpoint as Prometheus' own configuration.

It follows prometheus-operator (``pkg/prometheus/promcfg.go``) for the keys that the chart renders.
Any other key is an error, so that every key is tested. Targets are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Object

OWN_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
Read = Callable[[str, str, str], Path]
"""Kind, name and key of a reference -> a file with its content."""


def job(name: str, monitor: Object, targets: Sequence[str], token: Path, read: Read) -> Object:
    """Return a scrape job.

    Args:
        name: of the job.
        monitor: the ServiceMonitor, with one endpoint.
        targets: HOST:PORT of the pods of its Service.
        token: the token of Prometheus' account.
        read: reads references.
    """
    (endpoint,) = monitor["spec"]["endpoints"]
    rest = dict(endpoint)
    assert rest.pop("port")
    made: Object = {
        "job_name": name,
        "static_configs": [{"targets": list(targets)}],
        "scrape_interval": rest.pop("interval"),
        "scrape_timeout": rest.pop("scrapeTimeout"),
        "metrics_path": rest.pop("path"),
        "scheme": rest.pop("scheme", "http"),
        "honor_labels": rest.pop("honorLabels", False),
        "metric_relabel_configs": [_relabeling(row) for row in rest.pop("metricRelabelings", ())],
    }
    if "bearerTokenFile" in rest:
        assert rest.pop("bearerTokenFile") == OWN_TOKEN
        made["authorization"] = {"credentials_file": str(token)}
    if "authorization" in rest:
        given = rest.pop("authorization")
        shown = read("secret", given["credentials"]["name"], given["credentials"]["key"])
        made["authorization"] = {"type": given["type"], "credentials_file": str(shown)}
    if "tlsConfig" in rest:
        made["tls_config"] = _tls(rest.pop("tlsConfig"), read)
    assert rest == {}
    return made


def _tls(given: Mapping[str, Any], read: Read) -> Object:
    assert given.keys() == {"serverName", "ca"}
    ((kind, where),) = given["ca"].items()
    ca = read(kind, where["name"], where["key"])
    return {"server_name": given["serverName"], "ca_file": str(ca)}


def _relabeling(row: Mapping[str, Any]) -> Object:
    assert row.keys() <= {"action", "regex"}
    return dict(row)
