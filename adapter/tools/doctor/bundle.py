"""The support file: the report and the facts behind it, without secrets.

Only listed fields are written: names of objects, counts, versions, states, and values of settings
that are numbers, switches or words of a fixed set. Values of environment variables, annotations,
arguments, Secrets, the content of ConfigMaps and labels of other programs are never written. Texts
of others, such as the messages of conditions, are also cleaned of what looks like a credential.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from adapter import __version__
from adapter.answers.causes.gpunodes import gpus_of
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import Fact, Facts, Hpa, UnreadError
from adapter.tools.doctor.page import ExporterPage
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.scrapes import exporters

T = TypeVar("T")

_WORDS: Final = frozenset(
    (
        *("scrape", "prometheus", "azure_logs", "copy", "equal", "memory", "exact", "off"),
        *("profile", "auto", "buffer", "placeholder", "none", "aws", "azure", "google", "ratio"),
        *("percent", "debug", "info", "warning", "error", "console", "json", "GET", "POST"),
        *("http", "https", "mean", "last", "rate", "max", "min", "sum", "device", "server"),
        *servedmetrics.CATALOG.metrics,
    )
)
"""Texts in settings that are written."""
_LABELS: Final = (
    *("nvidia.com/", "amd.com/", "beta.amd.com/", "gpu.intel.com/", "topology.kubernetes.io/"),
    *("node.kubernetes.io/instance-type", "kubernetes.io/arch", "kubernetes.io/os"),
    *("cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu", "agentpool"),
    *("kubernetes.azure.com/accelerator", "karpenter.k8s.aws/instance-gpu"),
)
"""Prefixes of node labels that are written."""
_VARIABLES: Final = re.compile(r"(DCGM_EXPORTER|KUBERNETES)_[A-Z_]+")
_SWITCH: Final = re.compile(r"true|false|\d{1,9}")
"""Values of these variables that are written."""
_CREDENTIAL: Final = re.compile(
    r"-----BEGIN [^-]+-----.*?(-----END [^-]+-----|$)"
    r"|(?i:\b(bearer|basic)\s+\S+)"
    r"|\beyJ[\w-]+\.[\w.-]+"
    r"|(?<=://)[^/\s@]+@"
    r"|(?<=\?)[^\s\"']+"
    r"|(?i:\b(?:password|passwd|secret|token|apikey|api_key)\b\s*[=:]\s*\S+)"
    r"|[A-Za-z0-9+/=_-]{64,}",
    re.DOTALL,
)
_BEHAVIOR: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")


def clean(text: str) -> str:
    """Return a text without what looks like a credential."""
    return _CREDENTIAL.sub("[removed]", text)


def content(report: DoctorReport, facts: Facts) -> dict[str, Any]:
    """Return what is written to the file."""
    document = report.json()
    document.pop("source")
    return {
        "version": __version__,
        "report": _clean_value(document),
        "kubernetes": _of(facts.version, lambda pair: f"{pair[0]}.{pair[1]}"),
        "nodes": _of(facts.nodes, lambda rows: [_node(row, facts) for row in rows]),
        "pods": _of(facts.pods, lambda _: [_pod(pod) for pod in _relevant_pods(facts)]),
        "hpas": _of(facts.hpas, lambda rows: [_hpa(row) for row in rows]),
        "apiservices": _of(facts.apiservices, lambda rows: [_apiservice(row) for row in rows]),
        "exporter_pages": _of(facts.pages, lambda rows: [_page(row) for row in rows.values()]),
        "server_pages": _of(facts.server_pages, lambda rows: [_page(row) for row in rows.values()]),
        "self_metrics": _of(facts.self_pages, lambda rows: [_own_page(row) for row in rows]),
        "adapter": _of(facts.release, _release),
        "nodepool": _of(facts.nodepool, _release),
    }


def write(path: Path, report: DoctorReport, facts: Facts) -> None:
    """Write the file, readable by its owner only; raises ClientError."""
    text = json.dumps(content(report, facts), indent=1, ensure_ascii=False) + "\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o600)
            file.write(text)
    except OSError as error:
        raise ClientError(f"{path}: cannot be written: {error.strerror}") from None


def _of(fact: Fact[T], form: Any) -> Any:
    try:
        return form(fact.read())
    except UnreadError as error:
        return {"unread": clean(str(error))}


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_value(part) for part in value]
    if isinstance(value, dict):
        return {key: _clean_value(part) for key, part in value.items()}
    return value


def _node(node: SeenNode, facts: Facts) -> dict[str, Any]:
    labels = node.metadata.labels.items()
    return {
        "name": node.name,
        "ready": node.ready,
        "gpus": gpus_of(node, facts.gpu_resources),
        "labels": {key: clean(value) for key, value in labels if key.startswith(_LABELS)},
    }


def _relevant_pods(facts: Facts) -> Iterable[SeenPod]:
    """Return the pods with GPUs, exporters, servers and the adapter's own pods, once each."""
    pods = {pod.key: pod for pod in facts.gpu_pods}
    pods |= {pod.key: pod for pod, _ in exporters(facts)}
    servers = facts.server_pages.value or {}
    pods |= {pod.key: pod for pod in facts.pods.read() if pod.key in servers}
    for release in (facts.release.value, facts.nodepool.value):
        pods |= {pod.key: pod for pod in (release.pods if release else ())}
    return pods.values()


def _pod(seen_pod: SeenPod) -> dict[str, Any]:
    pod = seen_pod.pod
    return {
        "namespace": pod.ref.namespace,
        "name": pod.ref.name,
        "node": pod.node,
        "phase": pod.phase,
        "ready": pod.ready,
        "owner": [pod.owner.kind, pod.owner.name] if pod.owner else None,
        "gpus": dict(pod.gpus),
        "claims": pod.claims,
        "host_paths": pod.host_paths,
        "containers": [
            {
                "name": container.name,
                "image": clean(container.image),
                "ports": [port.container_port for port in container.ports],
                "switches": {
                    row.name: row.value
                    for row in container.env
                    if _VARIABLES.fullmatch(row.name) and _SWITCH.fullmatch(row.value)
                },
            }
            for container in seen_pod.spec.containers
        ],
        "statuses": [
            {
                "name": status.name,
                "restarts": status.restart_count,
                "waiting": status.state.waiting.reason if status.state.waiting else None,
            }
            for status in seen_pod.status.container_statuses
        ],
    }


def _hpa(hpa: Hpa) -> dict[str, Any]:
    return {
        "namespace": hpa.namespace,
        "name": hpa.name,
        "target": [hpa.kind, hpa.target],
        "replicas": [hpa.low, hpa.high, hpa.current, hpa.desired],
        "metrics": [
            {
                "type": row.type,
                "name": row.name,
                "target": row.target_type,
                "number": None if row.target is None else str(row.target),
                "selector": sorted((row.selector or {}).get("matchLabels") or {}),
            }
            for row in hpa.metrics
        ],
        "behavior": {way: _rules(hpa.behavior.get(way)) for way in ("scaleUp", "scaleDown")},
        "conditions": [[row.type, row.status, row.reason] for row in hpa.conditions],
    }


def _rules(rules: Any) -> Any:
    if not isinstance(rules, Mapping):
        return None
    behavior = {key: rules[key] for key in _BEHAVIOR if key in rules}
    if isinstance(behavior.get("policies"), list):
        rows = [row for row in behavior["policies"] if isinstance(row, Mapping)]
        behavior["policies"] = [{key: row.get(key) for key in _POLICY} for row in rows]
    return behavior


def _apiservice(apiservice: Any) -> dict[str, Any]:
    service = apiservice.spec.service
    conditions = [
        [row.type, row.status, row.reason, clean(row.message)]
        for row in apiservice.status.conditions
    ]
    return {
        "name": apiservice.metadata.name,
        "service": [service.namespace, service.name] if service else None,
        "conditions": conditions if service else [],
    }


def _page(page: ExporterPage) -> dict[str, Any]:
    return {
        "pod": page.pod,
        "node": page.node,
        "rule": page.rule,
        "trouble": page.trouble,
        "detail": clean(page.detail),
        "bytes": page.size,
        "samples": page.samples,
        "fields": sorted(page.fields),
        "series": sorted(page.series),
        "devices": len(page.devices),
        "instances": sum(device.mig for device in page.devices),
        "pods": len(page.named),
        "rejects": dict(page.rejects),
    }


def _own_page(page: Any) -> dict[str, Any]:
    rows = sorted(page.samples.items())
    return {
        "pod": page.pod,
        "samples": [[name, _clean_value(dict(labels)), value] for (name, labels), value in rows],
    }


def _release(release: Release | None) -> Any:
    if release is None:
        return None
    meta = release.workload.metadata
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "chart": meta.labels.get("helm.sh/chart"),
        "replicas": release.workload.spec.replicas,
        "images": [clean(c.image) for c in release.workload.spec.template.spec.containers],
        "settings": _settings(release.settings) if release.settings else None,
        "problems": [clean(problem) for problem in release.problems],
        "unread": clean(release.unread),
    }


def _settings(value: Any) -> Any:
    """Return the settings with numbers, switches and known words; other texts become a mark."""
    if isinstance(value, BaseModel):
        return {name: _settings(getattr(value, name)) for name in type(value).model_fields}
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [_settings(part) for part in value]
    if isinstance(value, str) and (not value or str(value) in _WORDS):
        return str(value)
    return "[set]" if value else None
