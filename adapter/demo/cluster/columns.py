"""The columns that kubectl prints of each resource, and their cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from adapter.figures import age
from apiservice.view.resource import Cell, Column

Json = dict[str, Any]
_AGE: Final = Column("Age", "Time since the object was created.")
NONE: Final = (_AGE,)
NAMESPACE: Final = (Column("Status", "Whether it is active."), _AGE)
NODE: Final = (
    Column("Status", "Whether the node is ready."),
    Column("Roles", "Roles of the node."),
    _AGE,
    Column("Version", "Release of the kubelet."),
    Column("Pool", "Node pool.", wide=True),
    Column("GPUs", "GPU resources that pods may request.", wide=True),
)
POD: Final = (
    Column("Ready", "Containers that are ready."),
    Column("Status", "Phase, or why it ends."),
    Column("Restarts", "Restarts of its containers.", "integer"),
    _AGE,
    Column("IP", "Address.", wide=True),
    Column("Node", "Node.", wide=True),
)
EVENT: Final = (
    Column("Last Seen", "Time since it was last seen."),
    Column("Type", "Normal or Warning."),
    Column("Reason", "Code of the reason."),
    Column("Object", "What it is about."),
    Column("Message", "The reason in words."),
)
DEPLOYMENT: Final = (
    Column("Ready", "Ready replicas."),
    Column("Up-to-date", "Replicas of the current template.", "integer"),
    Column("Available", "Available replicas.", "integer"),
    _AGE,
)
REPLICASET: Final = (
    Column("Desired", "Wanted replicas.", "integer"),
    Column("Current", "Replicas.", "integer"),
    Column("Ready", "Ready replicas.", "integer"),
    _AGE,
)
DAEMONSET: Final = (
    Column("Desired", "Nodes that should have a pod.", "integer"),
    Column("Ready", "Ready pods.", "integer"),
    _AGE,
)
APISERVICE: Final = (
    Column("Service", "Service that answers."),
    Column("Available", "Whether it answers."),
    _AGE,
)
HPA: Final = (
    Column("Reference", "What it scales."),
    Column("Targets", "Value and target of its metric."),
    Column("MinPods", "Smallest number of replicas.", "integer"),
    Column("MaxPods", "Largest number of replicas.", "integer"),
    Column("Replicas", "Current replicas.", "integer"),
    _AGE,
)


def none(row: Json, now: float) -> Sequence[Cell]:
    """Return the age."""
    return (_age(row["metadata"]["creationTimestamp"], now),)


def namespace(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a namespace."""
    return (row["status"]["phase"], *none(row, now))


def node(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a node."""
    amounts = row["status"]["allocatable"].items()
    gpus = ", ".join(f"{name} {amount}" for name, amount in amounts if "/" in name)
    version, pool = row["status"]["nodeInfo"]["kubeletVersion"], row["metadata"]["labels"]
    return ("Ready", None, *none(row, now), version, pool["agentpool"], gpus)


def pod(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a pod."""
    status, meta = row["status"], row["metadata"]
    containers = status.get("containerStatuses") or ()
    ready = sum(container["ready"] for container in containers)
    phase = "Terminating" if "deletionTimestamp" in meta else status["phase"]
    whole = len(row["spec"]["containers"])
    place = (status.get("podIP"), row["spec"].get("nodeName"))
    return (f"{ready}/{whole}", phase, 0, *none(row, now), *place)


def event(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of an event."""
    about = row["involvedObject"]
    return (
        _age(row["lastTimestamp"], now),
        row["type"],
        row["reason"],
        f"{about['kind'].lower()}/{about['name']}",
        row["message"],
    )


def deployment(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a Deployment."""
    status = row["status"]
    ready = f"{status['readyReplicas']}/{row['spec']['replicas']}"
    return (ready, status["updatedReplicas"], status["availableReplicas"], *none(row, now))


def replicaset(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a ReplicaSet."""
    status = row["status"]
    return (
        row["spec"]["replicas"],
        status["replicas"],
        status["readyReplicas"],
        *none(row, now),
    )


def daemonset(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of a DaemonSet."""
    status = row["status"]
    return (status["desiredNumberScheduled"], status["numberReady"], *none(row, now))


def apiservice(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of an APIService."""
    service = row["spec"]["service"]
    name = f"{service['namespace']}/{service['name']}"
    return (name, row["status"]["conditions"][0]["status"], *none(row, now))


def hpa(row: Json, now: float) -> Sequence[Cell]:
    """Return the cells of an HPA, in kubectl's form: ``54/70``, ``<unknown>/70``."""
    spec, status = row["spec"], row["status"]
    target = spec["scaleTargetRef"]
    values = status.get("currentMetrics") or ()
    texts = []
    for index, metric in enumerate(spec["metrics"]):
        current = (
            values[index]["pods"]["current"]["averageValue"] if index < len(values) else "<unknown>"
        )
        texts.append(f"{current}/{metric['pods']['target']['averageValue']}")
    return (
        f"{target['kind']}/{target['name']}",
        ", ".join(texts),
        spec["minReplicas"],
        spec["maxReplicas"],
        status["currentReplicas"],
        *none(row, now),
    )


def _age(text: str, now: float) -> str:
    return age(now - datetime.fromisoformat(text).timestamp())
