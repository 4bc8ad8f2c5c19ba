"""A cluster as its API server answers: tables of the view API, HPAs and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from adapter.tools.client.errors import VIEW
from adapter.tools.client.tables import ObjectTable, TableRow
from apiservice.view.resource import ViewResource
from tests.adapter.clientapi import ApiServer, table_row
from tests.adapter.tablenumbers import number_cells, number_names

Json = dict[str, Any]

HPAS: Final = "/apis/autoscaling/v2/horizontalpodautoscalers"
EVENTS: Final = "/api/v1/events"
REVIEW: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
POOL: Final = "karpenter.sh/nodepool"


def columns(resource: ViewResource) -> tuple[str, ...]:
    """The columns of a table, with the wide ones and the numbers."""
    return ("Name", *(column.name for column in resource.columns), *number_names(resource))


def gpu(name: str, node: str = "n1", number: str = "0", **cells: Any) -> Json:
    """A row of ``gpus``: busy, and held by a pod. Columns are named without their hyphens."""
    defaults: Json = {
        "Node": node,
        "GPU": number,
        "Model": "H100 80GB HBM3",
        "Util": "54%",
        "Mem": "31.2/80Gi",
        "Pods": "chat/llm-0",
        "Sharing": None,
        "Age": "3s",
        "UUID": f"GPU-{name}",
        "Power": "350W",
        "Temp": "61C",
        "XID": "0",
        "Idle-Since": None,
        "Exporter": f"http://{node}:9400/metrics",
    }
    labels = cells.pop("labels", {POOL: "p1", "vendor": "nvidia"})
    return table_row(name, _ordered(GPUS, defaults, cells), labels=labels)


def node(name: str, **cells: Any) -> Json:
    """A row of ``gpunodes`` with 8 GPUs that an exporter reports."""
    defaults: Json = {"Pool": "p1", "GPUs": 8, "Reported": 8, "Left": 0, "Silent": 0}
    labels = cells.pop("labels", {})
    return table_row(name, _ordered(GPUNODES, defaults, cells), labels=labels)


def pod(name: str, namespace: str = "chat", **cells: Any) -> Json:
    """A row of ``gpupods`` with a value."""
    defaults: Json = {
        "Util": "54%",
        "Mem": "31.2Gi",
        "Waiting": None,
        "Running": None,
        "Devices": "1",
        "How": "exact",
        "Age": "3s",
        "Why-Not": None,
        "Node": "n1",
        "Device-IDs": "GPU-g0",
        "Series": "DCGM_FI_DEV_GPU_UTIL",
        "Window": "30s",
    }
    return table_row(name, _ordered(GPUPODS, defaults, cells), namespace)


def workload(name: str, namespace: str = "chat", **cells: Any) -> Json:
    """A row of ``gpuworkloads``."""
    defaults: Json = {
        "Pods": 3,
        "Measured": 3,
        "Util": "54%",
        "Max": "92%",
        "HPA": "llm",
        "Target": "gpu_utilization 54/60",
        "Wants": "3",
        "Idle": None,
        "GPUs": 3,
        "Replicas": "3 (1..8)",
        "Why-Not": None,
    }
    return table_row(name, _ordered(GPUWORKLOADS, defaults, cells), namespace)


def _ordered(resource: ViewResource, given: Json, cells: Json) -> list[Any]:
    given |= {name.replace("_", "-"): cell for name, cell in cells.items()}
    names = [column.name for column in resource.columns]
    assert set(given) <= set(names), set(given) - set(names)
    return [given.get(name) for name in names] + number_cells(resource, given)


def table_of(resource: ViewResource, rows: Sequence[Json]) -> ObjectTable:
    """The table that the client reads from such rows."""
    table_rows = []
    for row in rows:
        meta = row["object"]["metadata"]
        cells = tuple(None if cell == "<none>" else cell for cell in row["cells"])
        table_rows.append(TableRow(meta["name"], meta["namespace"], meta["labels"], cells))
    return ObjectTable(columns(resource), table_rows)


def hpa(name: str = "llm", namespace: str = "chat", **status: Any) -> Json:
    """An HPA on gpu_utilization that keeps 3."""
    goal = {"type": "AverageValue", "averageValue": "60"}
    now = {"averageValue": "54"}
    metric = {"name": "gpu_utilization"}
    conditions = [
        {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"},
        {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"},
        {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"},
    ]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": goal}}],
        },
        "status": {
            "currentReplicas": 3,
            "desiredReplicas": 3,
            "currentMetrics": [{"type": "Pods", "pods": {"metric": metric, "current": now}}],
            "conditions": conditions,
            **status,
        },
    }


def stuck(message: str = "unable to get metric gpu_utilization") -> list[Json]:
    """The conditions of an HPA that reads no metric."""
    return [
        {"type": "AbleToScale", "status": "True", "reason": "SucceededGetScale"},
        {
            "type": "ScalingActive",
            "status": "False",
            "reason": "FailedGetPodsMetric",
            "message": message,
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        },
    ]


def serve(
    server: ApiServer,
    gpus: Sequence[Json] = (),
    pods: Sequence[Json] = (),
    workloads: Sequence[Json] = (),
    hpas: Sequence[Json] = (),
    events: Sequence[Json] = (),
    nodes: Sequence[Json] = (),
) -> None:
    """Let a server answer with this cluster."""
    server.tables |= {
        f"{VIEW}/gpus": (columns(GPUS), list(gpus)),
        f"{VIEW}/gpunodes": (columns(GPUNODES), list(nodes)),
        f"{VIEW}/gpupools": (columns(GPUPOOLS), []),
        f"{VIEW}/gpupods": (columns(GPUPODS), list(pods)),
        f"{VIEW}/gpuworkloads": (columns(GPUWORKLOADS), list(workloads)),
    }
    server.answers |= {
        HPAS: list(hpas),
        EVENTS: list(events),
        REVIEW: {"status": {"userInfo": {"username": "jane"}}},
    }
