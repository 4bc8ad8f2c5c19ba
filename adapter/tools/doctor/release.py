"""The installations of the adapter and of nodepool: their Deployment, pods and settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.config.settings import Settings
from adapter.pipeline.cluster.objects import ApiService
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.podselection import PodSelection
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.client.errors import VIEW_GROUP
from apiservice.runtime.yamltext import YamlError, document

NAME_LABEL: Final = "app.kubernetes.io/name"
SERVE: Final = "gpu-metrics-adapter"
NODEPOOL: Final = "gpu-metrics-adapter-nodepool"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
_COMPONENTS: Final = {SERVE: "serve", NODEPOOL: "nodepool"}
CONFIG_KEY: Final = "config.yaml"
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_GIVEN: Final = re.compile(r" \(got .*\)$")


class Release(NamedTuple):
    """An installation of the adapter."""

    workload: SeenWorkload
    pods: tuple[SeenPod, ...]
    settings: Settings | None
    """None if they cannot be read, or are not valid."""
    problems: tuple[str, ...] = ()
    """What is wrong with the settings."""
    unread: str = ""
    """Why the settings could not be read."""


def homes(apiservices: Iterable[ApiService]) -> frozenset[str]:
    """Return the namespaces of the Services behind the view API, which only an administrator can
    register."""
    return frozenset(
        apiservice.spec.service.namespace
        for apiservice in apiservices
        if apiservice.spec.service is not None and apiservice.spec.group == VIEW_GROUP
    )


def find(
    workloads: Iterable[SeenWorkload], name: str, trusted: frozenset[str] = frozenset()
) -> SeenWorkload | None:
    """Return the Deployment of a component, the first by namespace.

    The name label says which one it is, or, after the chart's `nameOverride`, the labels part-of
    and component.

    Args:
        workloads: of all namespaces.
        name: usual value of the name label. A user of any namespace can set labels.
        trusted: see :func:`homes`; if there are any, only their Deployments count.
    """
    deployments = [
        workload
        for workload in workloads
        if workload.kind == "Deployment"
        and _is_component(workload.metadata.labels, name)
        and (not trusted or workload.metadata.namespace in trusted)
    ]
    return min(deployments, key=lambda deployment: deployment.key, default=None)


def _is_component(labels: Mapping[str, str], name: str) -> bool:
    part = (labels.get(PART_OF_LABEL), labels.get(COMPONENT_LABEL))
    return labels.get(NAME_LABEL) == name or part == (SERVE, _COMPONENTS.get(name))


def configmap_of(workload: SeenWorkload) -> str:
    """Return the name of the ConfigMap with the settings; empty without one."""
    volumes = workload.spec.template.spec.volumes
    return next((volume.config_map.name for volume in volumes if volume.config_map), "")


def release(
    workload: SeenWorkload,
    pods: Sequence[SeenPod],
    data: Mapping[str, str] | None,
    unread: str = "",
) -> Release:
    """Return an installation.

    Args:
        workload: its Deployment.
        pods: all pods.
        data: of its ConfigMap; None if it could not be read.
        unread: why not.
    """
    own_pods = tuple(PodSelection(pods).of_workload(workload))
    if data is None:
        return Release(workload, own_pods, None, (), unread)
    try:
        content: Any = document(data.get(CONFIG_KEY, "")) or {}
    except YamlError as error:
        return Release(workload, own_pods, None, (f"{CONFIG_KEY} is not YAML: {error}",))
    if not isinstance(content, dict):
        return Release(workload, own_pods, None, (f"{CONFIG_KEY} is not a mapping",))
    # Here, because it reads the environment with a library that nothing else of doctor needs.
    from adapter.config.process.config import ConfigError, settings_of  # noqa: PLC0415

    try:
        return Release(workload, own_pods, settings_of(content, CONFIG_KEY, _environment(workload)))
    except ConfigError as error:
        # The value that was given may be a secret.
        problems = tuple(_GIVEN.sub("", problem) for problem in error.problems)
        return Release(workload, own_pods, None, problems)


def _environment(workload: SeenWorkload) -> Mapping[str, str]:
    """Return the variables of the pods: the chart sets settings by them."""
    containers = workload.spec.template.spec.containers
    return {row.name: row.value for container in containers for row in container.env if row.value}


def helm_release(workload: SeenWorkload) -> tuple[str, str]:
    """Return the namespace and the name of the Helm release of a workload.

    Helm notes both in annotations. The namespace of the objects may be another one.
    """
    meta = workload.metadata
    home = meta.annotations.get("meta.helm.sh/release-namespace", "")
    return (
        # It becomes part of commands: an annotation may be any text, a namespace may not.
        home if _NAMESPACE.fullmatch(home) else meta.namespace,
        meta.labels.get("app.kubernetes.io/instance", meta.name),
    )


def helm_test(workload: SeenWorkload) -> str:
    """Return the command that runs doctor in the cluster, and shows what it says."""
    meta = workload.metadata
    home, name = helm_release(workload)
    job = f"{meta.name[:56].removesuffix('-')}-doctor"
    # `helm test --logs` does not find the pod of a Job.
    return f"helm -n {home} test {name}; kubectl -n {meta.namespace} logs job/{job}"
