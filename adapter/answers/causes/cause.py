"""A cause: why pods that an HPA wants do not exist, or do not serve."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple


class CauseCode(StrEnum):
    """The kinds of causes. ``doctor`` has a check for each."""

    QUOTA = "quota"
    POD_SECURITY = "pod-security"
    ADMISSION = "admission"
    CRASH_LOOP = "crash-loop"
    OUT_OF_MEMORY = "out-of-memory"
    IMAGE_PULL = "image-pull"
    CONTAINER_CONFIG = "container-config"
    NEVER_READY = "never-ready"
    TAINT = "taint"
    GPUS_UNAVAILABLE = "gpus-unavailable"
    DEVICE_UNHEALTHY = "device-unhealthy"
    DEVICE_TAINT = "device-taint"
    ROLLOUT = "rollout"
    UNSCHEDULABLE = "unschedulable"
    SCHEDULING_GATE = "scheduling-gate"
    FOREIGN_PODS = "foreign-pods"
    REPLICAS_RESET = "replicas-reset"
    WRONG_NAMESPACE = "wrong-namespace"
    METRICS_API_DOWN = "metrics-api-down"
    METRICS_API_MISSING = "metrics-api-missing"
    METRICS_API_TAKEN = "metrics-api-taken"
    SCALED_OBJECT = "scaled-object"
    SCALER_ADDRESS = "scaler-address"
    NEVER_WAKES = "never-wakes"
    CONTROLLER_STOPPED = "controller-stopped"
    NODE_KEPT = "node-kept"

    @property
    def of_keda(self) -> bool:
        """Whether a ScaledObject is at fault."""
        return self in (
            CauseCode.SCALED_OBJECT,
            CauseCode.SCALER_ADDRESS,
            CauseCode.NEVER_WAKES,
        )


class Cause(NamedTuple):
    """One cause."""

    code: CauseCode
    subject: str
    """The object at fault, as a user names it: ``Deployment chat/llm``, ``node n3``."""
    text: str
    """One plain sentence without a full stop: what is wrong, how often, since when."""
    fix: str
    """What to do, in words."""
    command: str = ""
    """A command that does it, or that shows more; empty without one."""
    pods: tuple[str, ...] = ()
    """The names of the pods that it concerns."""
    since: float | None = None
    """Epoch seconds since when; None if not known."""

    @property
    def key(self) -> str:
        """The same for one cause of many HPAs: ``gpus-unavailable node n3``."""
        return f"{self.code} {self.subject}"

    def json(self) -> dict[str, Any]:
        """The fields that are known, for programs."""
        fields = {**self._asdict(), "code": str(self.code), "pods": list(self.pods)}
        return {key: value for key, value in fields.items() if value not in ("", None, [])}


def group_causes(rows: Iterable[tuple[str, Cause]]) -> list[tuple[Cause, list[str]]]:
    """Return each cause once, with whom it concerns, in the order of the rows.

    Args:
        rows: whom a cause concerns (``hpa chat/llm``), and the cause.
    """
    groups: dict[str, tuple[Cause, list[str]]] = {}
    for whom, cause in rows:
        first, concerned = groups.setdefault(cause.key, (cause, []))
        concerned.append(whom)
        more = [name for name in cause.pods if name not in first.pods]
        groups[cause.key] = (first._replace(pods=(*first.pods, *more)), concerned)
    return list(groups.values())
