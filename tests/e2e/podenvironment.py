"""The environment of a container: the image's, the cluster's and its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Object
from tests.e2e.podvolumes import Lookup, NotYetError, field
from tests.e2e.privatenetwork import API_ADDRESS

PYTHON = Path(sys.prefix)


def variables(
    pod: Object, container: Mapping[str, Any], address: str, lookup: Lookup
) -> dict[str, str]:
    """Return the environment: the image's, the cluster's, the container's own.

    Raises:
        NotYetError: the ConfigMap or Secret of a variable does not exist yet.
    """
    environment = {
        "PATH": f"{PYTHON}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/",
        "HOSTNAME": pod["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": API_ADDRESS,
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    }
    seen = {**pod, "status": {**pod.get("status", {}), "podIP": address}}
    for row in container.get("envFrom", ()):
        environment |= _whole(row, lookup)
    for row in container.get("env", ()):
        if "valueFrom" in row:
            environment[row["name"]] = _reference(seen, row["valueFrom"], lookup)
        else:
            environment[row["name"]] = expanded(row.get("value", ""), environment)
    return environment


def _reference(pod: Object, source: Mapping[str, Any], lookup: Lookup) -> str:
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"])
    if "configMapKeyRef" not in source:
        raise NotImplementedError(f"a variable from {sorted(source)}")
    row = source["configMapKeyRef"]
    config_map = lookup("ConfigMap", row["name"])
    if config_map is None or row["key"] not in config_map.get("data", {}):
        raise NotYetError(f"ConfigMap {row['name']}")
    return str(config_map["data"][row["key"]])


def _whole(source: Mapping[str, Any], lookup: Lookup) -> dict[str, str]:
    if "configMapRef" not in source:
        raise NotImplementedError(f"variables from {sorted(source)}")
    obj = lookup("ConfigMap", source["configMapRef"]["name"])
    if obj is None:
        raise NotYetError(f"ConfigMap {source['configMapRef']['name']}")
    return {source.get("prefix", "") + key: str(text) for key, text in obj["data"].items()}


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return a text in which ``$(NAME)`` is replaced if the variable exists."""

    def value(match: re.Match[str]) -> str:
        return environment.get(match[1], match[0])

    return re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", value, text)
