"""Public Helm charts whose values the fixes name: where each is, and its keys.

Keys of dcgm-exporter: NVIDIA/dcgm-exporter ``deployment/values.yaml``, and the variables that its
``templates/daemonset.yaml`` writes itself; the others come from ``extraEnv``. Another chart is a
row here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple


class Chart(NamedTuple):
    """A chart with keys for what the fixes change."""

    source: Sequence[str]
    """What ``helm upgrade`` is given for it after the release: name and options."""
    env: str = ""
    """Key of a list of variables."""
    own: frozenset[str] = frozenset()
    """Variables that the chart writes without that list."""
    switches: Mapping[str, str] = {}
    """Variable -> the key that turns it on, with what it needs besides."""
    fields: Mapping[str, str] = {}
    """Field of an object -> key."""


CHARTS: Final[Mapping[str, Chart]] = {
    "dcgm-exporter": Chart(
        ["dcgm-exporter", "--repo", "https://nvidia.github.io/dcgm-exporter/helm-charts"],
        "extraEnv",
        frozenset(
            {"DCGM_EXPORTER_KUBERNETES", "DCGM_EXPORTER_LISTEN", "NODE_NAME", "NODE_IP"}
            | {"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "KUBERNETES_ENABLE_DRA"}
            | {"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "DCGM_EXPORTER_WEB_CONFIG_FILE"}
            | {"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"}
        ),
        {
            # The key also creates the role with which the exporter reads pods.
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "kubernetes.enablePodUID",
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "kubernetes.enablePodLabels",
            "KUBERNETES_ENABLE_DRA": "kubernetesDRA.enabled",
        },
    ),
    "gpu-metrics-adapter": Chart(
        ["charts/gpu-metrics-adapter"], fields={"spec.replicas": "replicas"}
    ),
}


def arguments(
    chart: str,
    env: tuple[str, str | None] | None,
    fields: Mapping[str, Any] | None,
    tolerations: Sequence[Mapping[str, Any]],
    present: Sequence[Mapping[str, Any]] | None,
) -> list[str]:
    """Return the options of ``helm upgrade`` that change values; none if they are not known.

    Args:
        env: a variable and its value; None as value removes it.
        fields: path -> value of fields of the object.
        tolerations: that are added to the chart's list; unknown here, so not a change that a
            command makes.
        present: the container's variables, because a list is written whole.
    """
    keys = CHARTS.get(chart)
    if keys is None or tolerations:
        return []
    if env is not None:
        return _of_variable(keys, *env, present)
    if fields and all(path in keys.fields for path in fields):
        return [f"--set {keys.fields[path]}={shlex.quote(str(fields[path]))}" for path in fields]
    return []


def _of_variable(
    chart: Chart, name: str, value: str | None, present: Sequence[Mapping[str, Any]] | None
) -> list[str]:
    if name in chart.switches:
        return [f"--set {chart.switches[name]}={'false' if value is None else 'true'}"]
    if not chart.env or present is None:
        return []
    # The last of two variables of one name counts, so the list overrides the chart's own.
    rows = [row for row in present if row.get("name") not in {name, *chart.own}]
    if not all("value" in row or "valueFrom" in row for row in rows):
        return []
    if value is not None:
        rows.append({"name": name, "value": value})
    text = json.dumps(rows, separators=(",", ":"))
    return [f"--set-json {shlex.quote(f'{chart.env}={text}')}"]


def words(chart: str, env: tuple[str, str | None] | None, fields: Mapping[str, Any] | None) -> str:
    """Return the change of a value in words; empty if no key is known for it."""
    keys = CHARTS.get(chart)
    if keys is None:
        return ""
    if env is not None:
        name, value = env
        if name in keys.switches:
            return f"set {keys.switches[name]} to {'false' if value is None else 'true'}"
        if keys.env:
            row = f"{{name: {name}, value: {json.dumps(value)}}}"
            return f"remove {name} from {keys.env}" if value is None else f"add {row} to {keys.env}"
        return ""
    changes = [
        f"set {keys.fields[path]} to {value}"
        for path, value in (fields or {}).items()
        if path in keys.fields
    ]
    return " and ".join(changes)
