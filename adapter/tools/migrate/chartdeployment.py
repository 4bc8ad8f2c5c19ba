"""The Deployment that prometheus-adapter's chart makes of its values.

It follows ``charts/prometheus-adapter/templates/deployment.yaml`` of
prometheus-community/helm-charts (chart 5.3.0), as far as this command reads a Deployment.
"""

from __future__ import annotations

import re
from typing import Any, Final

from adapter.tools.client.access import Json
from adapter.tools.migrate.helmvalues import mapping
from adapter.tools.migrate.peerpods import PROGRAM, part
from apiservice.runtime.yamltext import value_of

_OF_POD: Final[tuple[str, ...]] = (
    *("dnsPolicy", "dnsConfig", "nodeSelector", "affinity", "tolerations"),
    *("topologySpreadConstraints", "priorityClassName"),
)
"""Values that are fields of the pod."""
_KEYS: Final[tuple[str, ...]] = (
    *("prometheus", "metricsRelistInterval", "logLevel", "listenPort", "tls", "certManager", "env"),
    *("extraArguments", "extraContainers", "extraVolumes", "extraVolumeMounts", "replicas"),
    *("hostNetwork", *_OF_POD),
)
"""Values that become a part of the Deployment."""
_CERTIFICATE: Final = (
    "--tls-cert-file=/var/run/serving-cert/tls.crt",
    "--tls-private-key-file=/var/run/serving-cert/tls.key",
)


def render_deployment(node: Any) -> Json:
    """Return the Deployment; without ``--prometheus-url`` if the values name no URL.

    The chart's default is a Prometheus in the namespace ``default``, which hardly anybody has:
    values without a URL are a part of a configuration.

    Args:
        node: the values.

    Raises:
        YamlError: a value cannot be read.
    """
    given = mapping(node)
    values = {key: value_of(given[key]) for key in _KEYS if key in given}
    certificate = _enabled(values, "tls", "enable") or _enabled(values, "certManager", "enabled")
    url = _url(values)
    arguments = [
        "/adapter",
        f"--secure-port={_text(values.get('listenPort', 6443))}",
        *(_CERTIFICATE if certificate else ()),
        "--cert-dir=/tmp/cert",
        *([f"--prometheus-url={url}"] if url else ()),
        f"--metrics-relist-interval={_text(values.get('metricsRelistInterval', '1m'))}",
        f"--v={_text(values.get('logLevel', 4))}",
        "--config=/etc/adapter/config.yaml",
        *_list(values, "extraArguments"),
    ]
    volumes = [
        *_list(values, "extraVolumes"),
        {"name": "config", "configMap": {"name": PROGRAM}},
    ]
    mounts = [
        *_list(values, "extraVolumeMounts"),
        {"name": "config", "mountPath": "/etc/adapter/", "readOnly": True},
    ]
    container = {
        "name": PROGRAM,
        "image": PROGRAM,
        "env": _list(values, "env"),
        "args": arguments,
        "volumeMounts": mounts,
    }
    spec = {
        **{key: values[key] for key in _OF_POD if values.get(key)},
        "hostNetwork": _enabled(values, "hostNetwork", "enabled"),
        "containers": [container, *_list(values, "extraContainers")],
        "volumes": volumes,
    }
    replicas = re.fullmatch(r"[0-9]{1,9}", _text(values.get("replicas")))
    return {
        "metadata": {"name": PROGRAM},
        "spec": {"replicas": int(replicas[0]) if replicas else 1, "template": {"spec": spec}},
    }


def _url(values: Json) -> str:
    prometheus = part(values, "prometheus")
    url, port = _text(prometheus.get("url")), prometheus.get("port", 9090)
    if not url:
        return ""
    return f"{url}{f':{_text(port)}' if port else ''}{_text(prometheus.get('path'))}"


def _enabled(values: Json, section: str, key: str) -> bool:
    return bool(part(values, section).get(key))


def _list(values: Json, key: str) -> list[Any]:
    value = values.get(key)
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a value as a template prints it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
