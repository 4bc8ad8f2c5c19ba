"""prometheus-adapter's rules file, as the ConfigMap has it that the adapter mounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from adapter.answers.rules.rulefile import RulesFileError
from adapter.answers.rules.ruleset import rules_of
from adapter.pipeline.cluster.managers import Manager
from adapter.pipeline.cluster.objects import ConfigMap, read
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.release import Release


class Mounted(NamedTuple):
    """Where the rules file comes from."""

    namespace: str
    configmap: str
    key: str

    @property
    def subject(self) -> str:
        """What a finding calls the ConfigMap."""
        return f"configmap {self.namespace}/{self.configmap}"


class SeenRules(NamedTuple):
    """What the rules file contains."""

    place: Mounted
    rejected: str = ""
    """Why the file cannot be used at all; empty if it can."""
    broken: Sequence[str] = ()
    """The rules that are left out, each with its line and the reason."""
    manager: Manager | None = None
    """What writes the ConfigMap again."""


def find_mounted_rules(release: Release) -> Mounted | None:
    """Return the ConfigMap behind `rules.file`; None without one."""
    file = release.settings.rules.file if release.settings else None
    if file is None:
        return None
    spec = release.workload.spec.template.spec
    volumes = {row.name: row.config_map for row in spec.volumes if row.config_map}
    for container in spec.containers:
        for mount in container.volume_mounts:
            volume, folder = volumes.get(mount.name), PurePosixPath(mount.mount_path)
            path = PurePosixPath(file)
            if volume is None or not path.is_relative_to(folder):
                continue
            inside = mount.sub_path or str(path.relative_to(folder))
            return Mounted(release.workload.metadata.namespace, volume.name, volume.key(inside))
    return None


async def read_rules_of(api: Api, release: Release) -> SeenRules | None:
    """Return the rules of an installation; None without a file in a ConfigMap.

    Raises:
        ClientError: the ConfigMap cannot be read.
    """
    place = find_mounted_rules(release)
    if place is None:
        return None
    path = f"/api/v1/namespaces/{place.namespace}/configmaps/{quote(place.configmap)}"
    try:
        configmap = read(await api.get(path), ConfigMap)
    except ClientError as error:
        if error.status != 404:
            raise
        return SeenRules(place, "does not exist, so new pods of the adapter do not start")
    return seen_rules(place, configmap.data, release)._replace(manager=configmap.metadata.manager)


def seen_rules(place: Mounted, data: Mapping[str, str], release: Release) -> SeenRules:
    """Return what the data of a ConfigMap contains."""
    if place.key not in data:
        return SeenRules(place, f"has no key {place.key}, so new pods of the adapter do not start")
    wanted = bool(release.settings and release.settings.rules.resource_metrics)
    try:
        rules = rules_of(data[place.key].encode("utf-8", "replace"), resource_metrics=wanted)
    except RulesFileError as error:
        return SeenRules(place, f"{place.key} {error}")
    return SeenRules(place, "", [str(problem) for problem in rules.problems if problem.broken])
