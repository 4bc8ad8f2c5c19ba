"""What is used of the ``kubernetes`` package: its loaders of kubeconfigs and service accounts.

Both import the package's client, which they need only for functions that nothing calls here. It
brings pydantic, dateutil and a second way to retry: 60 ms of CPU at the start of each command. So
it is replaced by an empty module while they are imported.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

_CLIENT: Final = "kubernetes.aio.client"
_NAMES: Final = ("ApiClient", "Configuration")

_real = sys.modules.get(_CLIENT)
if _real is None:
    sys.modules[_CLIENT] = ModuleType(_CLIENT)
    vars(sys.modules[_CLIENT]).update(dict.fromkeys(_NAMES))
try:
    from kubernetes.aio.config import kube_config
    from kubernetes.aio.config.config_exception import ConfigException
    from kubernetes.aio.config.incluster_config import (
        SERVICE_HOST_ENV_NAME,
        SERVICE_TOKEN_FILENAME,
        InClusterConfigLoader,
    )
finally:
    if _real is None:
        del sys.modules[_CLIENT]

# Their classes carry no annotations.
kubeconfigs: Any = kube_config
kubeconfig_node: Any = kube_config.ConfigNode
kubeconfig_loader: Any = kube_config.KubeConfigLoader
kubeconfig_merger: Any = kube_config.KubeConfigMerger
service_account_loader: Any = InClusterConfigLoader

__all__ = [
    "SERVICE_HOST_ENV_NAME",
    "SERVICE_TOKEN_FILENAME",
    "ConfigException",
    "kubeconfig_loader",
    "kubeconfig_merger",
    "kubeconfig_node",
    "kubeconfigs",
    "service_account_loader",
]
