"""The query for Azure Container Insights' GPU records, and the parsing of its answer and errors.

``InsightsMetrics`` has one record per minute for each container, GPU and metric, under
``container.azm.ms/gpu`` (Azure Monitor, "Configure GPU monitoring with Container insights").
``Tags.containerName`` is ``<pod uid>/<container>``; only the UID identifies the pod.
"""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.pipeline.catalog import azure
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.uids import PodUids
from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.errors import SourceError, describe
from adapter.pipeline.sources.login.tokens import redact_error

SERIES: Final = tuple(field.name for field in azure.FIELDS)
"""Metrics of usage; ``containerGpuLimits`` and ``containerGpuRequests`` repeat the pods' specs."""

_COLUMNS: Final = ("TimeGenerated", "Name", "Val", "Computer", "container", "gpu", "model")


def describe_query_error(error: Exception, library: Any) -> SourceError:
    """Return any failure of a query as a SourceError.

    Args:
        library: ``azure.core.exceptions``.
    """
    status = getattr(error, "status_code", None)
    if isinstance(error, json.JSONDecodeError | library.DecodeError) or status == 200:
        return SourceError(
            "not_json", f"the answer is not Log Analytics' JSON ({error}); check the endpoint"
        )
    if isinstance(error, library.HttpResponseError):
        return _describe_refusal(error)
    if isinstance(error, library.ServiceRequestError | library.ServiceResponseError):
        reason = "timeout" if "imeout" in type(error).__name__ else "connect"
        return SourceError(reason, redact_error(error))
    if isinstance(error, library.AzureError):
        return SourceError("protocol", redact_error(error))
    return describe(error)


def retry_after(error: Any) -> float:
    """Return the seconds of ``Retry-After``, limited to 0-600 because the header is untrusted."""
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    return min(float(text), 600.0) if text.isdigit() else 0.0


def _describe_refusal(error: Any) -> SourceError:
    status = error.status_code or 0
    text = f"HTTP status {status}: {_innermost_message(error)}"
    if status in (401, 403):
        return SourceError(
            "denied", f"{text}; give the identity the role Log Analytics Reader there"
        )
    if 300 <= status < 400:
        return SourceError("redirect", f"{text}: redirects are not followed; correct the endpoint")
    if status == 404:
        return SourceError("status", f"{text}; check workspace_id")
    return SourceError("unavailable" if status == 429 or status >= 500 else "query", text)


def _innermost_message(error: Any) -> str:
    """Return the innermost of the nested errors in a body (``error.innererror``)."""
    nested = error.error
    while getattr(nested, "innererror", None):
        inner = nested.innererror
        if isinstance(inner, Mapping):
            while isinstance(inner.get("innererror"), Mapping):
                inner = inner["innererror"]
            return redact_error(ValueError(f"{inner.get('code', '')}: {inner.get('message', '')}"))
        nested = inner
    if nested is not None and getattr(nested, "message", None):
        return redact_error(ValueError(f"{nested.code}: {nested.message}"))
    return redact_error(error)


def kusto(cluster: str | None = None) -> str:
    """Return the query for the newest value of each container, GPU and metric.

    Args:
        cluster: resource id or name of one of the clusters that share the workspace.
    """
    names = ", ".join(f"'{name}'" for name in SERIES)
    steps = [
        "InsightsMetrics",
        f"where Namespace == 'container.azm.ms/gpu' and Name in ({names})",
        "extend t = parse_json(Tags)",
    ]
    if cluster:
        wanted = cluster.replace("\\", "\\\\").replace("'", "\\'")
        steps.append(
            f"where t['container.azm.ms/clusterId'] =~ '{wanted}' "
            f"or t['container.azm.ms/clusterName'] =~ '{wanted}'"
        )
    steps.append(
        "summarize arg_max(TimeGenerated, Val) by Name, Computer, "
        "container = tostring(t.containerName), gpu = tostring(t.gpuId), "
        "model = tostring(t.gpuModel)"
    )
    return " | ".join(steps)


@dataclass(slots=True)
class Usage:
    """The content of an answer."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    """Node -> samples of the pods on it."""
    rejects: Counter[str] = field(default_factory=Counter)
    """Records that were left out, by reason."""
    total: int = 0
    """Records in the answer."""


class UsageMemo:
    """The label sets of the last answers, so that equal label sets share one object."""

    def __init__(self) -> None:
        self._sets: dict[tuple[str, ...], Mapping[str, str]] = {}

    def labels(self, pod: Pod, container: str, gpu: str, model: str) -> Mapping[str, str]:
        """Return a record's labels in the spelling of dcgm-exporter."""
        key = (pod.uid, container, gpu, model)
        labels = self._sets.get(key)
        if labels is None:
            labels = self._sets[key] = {
                "UUID": gpu,
                "modelName": model,
                "Hostname": pod.node,
                "namespace": pod.ref.namespace,
                "pod": pod.ref.name,
                "container": container,
                "pod_uid": pod.uid,
            }
        return labels

    def keep(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        """Drop the label sets that no sample has."""
        used = {id(row.labels) for some in samples.values() for row in some}
        self._sets = {key: made for key, made in self._sets.items() if id(made) in used}


def read(
    columns: Sequence[str], samples: Sequence[Sequence[Any]], pods: PodUids, memo: UsageMemo
) -> Usage:
    """Parse a table into usage. A malformed record costs only that record.

    Raises:
        SourceError: ``columns``, if a column is missing.
    """
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise SourceError(
            "columns",
            f"the answer has no column {', '.join(missing)}; it has {', '.join(columns)[:200]}",
        )
    indexes = [columns.index(name) for name in _COLUMNS]
    usage = Usage(total=len(samples))
    for row in samples:
        _add(usage, [row[i] for i in indexes], pods, memo)
    memo.keep(usage.samples)
    return usage


def _add(usage: Usage, cells: Sequence[Any], pods: PodUids, memo: UsageMemo) -> None:
    when, name, value, _, owner, gpu, model = cells
    if not isinstance(when, datetime.datetime) or name not in SERIES:
        usage.rejects["bad_sample"] += 1
        return
    if not isinstance(value, int | float) or not math.isfinite(value):
        usage.rejects["bad_value"] += 1
        return
    uid, slash, container = str(owner or "").partition("/")
    if not slash or not uid or not gpu:
        usage.rejects["unnamed_sample"] += 1
        return
    pod = pods.get(uid)
    if pod is None or not pod.node:
        usage.rejects["unknown_uid"] += 1
        return
    labels = memo.labels(pod, container, str(gpu), str(model or ""))
    usage.samples.setdefault(pod.node, []).append(
        Sample(name, labels, float(value), when.timestamp())
    )
