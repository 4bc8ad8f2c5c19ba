"""The exporter's own series, whichever way Prometheus was told to scrape them.

With ``honorLabels: false``, the default, the workload is in ``exported_pod`` and an idle
GPU's ``pod`` is the exporter's own; with ``true`` the workload is in ``pod``. Panels read
both.
"""

from __future__ import annotations

from typing import Final

_ASKING: Final = 'resource=~"(nvidia|amd|intel)_com_(gpu|mig).*"'
"""GPUs, as kube-state-metrics writes their resources."""
HOLDERS: Final = f"kube_pod_container_resource_requests{{{_ASKING}}}"
"""Containers that ask for GPUs."""
NODES: Final = "DCGM_FI_DEV_GPU_TEMP, Hostname"
_EXPORTERS: Final = ".*dcgm-exporter.*"
_PODS: Final = "($workload)(-.*)?"


def asked(more: str = "") -> str:
    """What containers of the chosen namespaces ask for; ``more`` is a further matcher."""
    matchers = ", ".join(filter(None, (_ASKING, 'namespace=~"$namespace"', more)))
    return f"kube_pod_container_resource_requests{{{matchers}}}"


def devices(series: str) -> str:
    """A series of the chosen nodes' devices."""
    return f'{series}{{Hostname=~"$node"}}'


def held(series: str) -> str:
    """The same of devices that a chosen workload's pods hold, with the pod in ``pod``."""
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
    """One number for each pod."""
    return f"{how} by (namespace, pod) ({held(series)})"
