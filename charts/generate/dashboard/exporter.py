"""The exporter's own series, with ``honorLabels`` on or off in Prometheus.

With ``honorLabels: false``, the default, the workload is in ``exported_pod`` and an idle
GPU's ``pod`` is the exporter's own; with ``true`` the workload is in ``pod``. Panels read
both.
"""

from __future__ import annotations

from typing import Final

_ASKING: Final = 'resource=~"((nvidia|amd)_com_(gpu|mig)|gpu_intel_com_).*"'
"""The resources of GPUs, in the spelling of kube-state-metrics."""
HOLDERS: Final = f"kube_pod_container_resource_requests{{{_ASKING}}}"
"""Containers that request GPUs."""
NODES: Final = "DCGM_FI_DEV_GPU_TEMP, Hostname"
_EXPORTERS: Final = ".*dcgm-exporter.*"
_PODS: Final = "($workload)(-.*)?"


def gpu_requests(more: str = "") -> str:
    """Requests of containers in the chosen namespaces; ``more`` is an additional matcher."""
    matchers = ", ".join(filter(None, (_ASKING, 'namespace=~"$namespace"', more)))
    return f"kube_pod_container_resource_requests{{{matchers}}}"


def devices(series: str, more: str = "") -> str:
    """A series, for devices of the chosen nodes; ``more`` is an additional matcher."""
    matchers = ", ".join(filter(None, ('Hostname=~"$node"', more)))
    return f"{series}{{{matchers}}}"


def held_devices(series: str) -> str:
    """A series, for devices that the pods of a chosen workload hold, with the pod in ``pod``."""
    renamed = (
        f'{series}{{exported_pod=~"{_PODS}", exported_pod!="", '
        f'exported_namespace=~"$namespace", Hostname=~"$node"}}'
    )
    for name in ("pod", "namespace"):
        renamed = f'label_replace({renamed}, "{name}", "$1", "exported_{name}", "(.+)")'
    honored = (
        f'{series}{{exported_pod="", pod=~"{_PODS}", pod!="", pod!~"{_EXPORTERS}", '
        f'namespace=~"$namespace", Hostname=~"$node"}}'
    )
    return f"({renamed} or {honored})"


def by_pod(how: str, series: str) -> str:
    """A series, aggregated per pod."""
    return f"{how} by (namespace, pod) ({held_devices(series)})"
