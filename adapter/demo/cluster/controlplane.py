"""What the API server of the demo says of itself: the registered APIs, and whom they may trust."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from adapter.demo.certificates import CLIENT_NAME, FrontProxy
from adapter.demo.cluster.nodes import SYSTEM
from adapter.demo.manifests import EXPORTER_NAMESPACE, identity
from adapter.demo.state import DemoState

Json = dict[str, Any]
NAME: Final = "gpu-metrics-adapter"
_APIS: Final = (
    ("custom.metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("view.gpu-metrics-adapter.io", "v1alpha1"),
)


def configmaps(state: DemoState, proxy: FrontProxy) -> Iterator[Json]:
    """Yield the ConfigMap from which ``serve`` would learn the front proxy's CA in a cluster."""
    name = "extension-apiserver-authentication"
    yield {
        "metadata": {
            "name": name,
            "namespace": SYSTEM,
            "uid": identity("configmap", name, SYSTEM),
            "creationTimestamp": state.times.text(state.world.start),
        },
        "data": {
            "requestheader-client-ca-file": proxy.ca.read_text(encoding="ascii"),
            "requestheader-allowed-names": json.dumps([CLIENT_NAME]),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


def apiservices(state: DemoState, proxy: FrontProxy) -> Iterator[Json]:
    """Yield the registrations of the APIs that ``serve`` answers."""
    for group, version in _APIS:
        name = f"{version}.{group}"
        yield {
            "metadata": {
                "name": name,
                "uid": identity("apiservice", name),
                "creationTimestamp": state.times.text(state.world.start),
                "labels": {"app.kubernetes.io/name": NAME},
            },
            "spec": {
                "group": group,
                "version": version,
                "service": {"namespace": EXPORTER_NAMESPACE, "name": NAME, "port": 443},
                "caBundle": base64.b64encode(proxy.ca.read_bytes()).decode(),
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
            "status": {
                "conditions": [
                    {
                        "type": "Available",
                        "status": "True",
                        "reason": "Passed",
                        "message": "all checks passed",
                        "lastTransitionTime": state.times.text(state.world.start),
                    }
                ]
            },
        }
