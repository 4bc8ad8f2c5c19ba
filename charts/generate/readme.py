"""Writes the chart's README from its values.yaml, values.schema.json and Chart.yaml."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from charts.generate import values as chartvalues

CHART = Path(__file__).parents[1] / "gpu-metrics-adapter"
_TOP = """\
# gpu-metrics-adapter

<!-- written by `make docs` from values.yaml, values.schema.json and Chart.yaml -->

{description}

## Requirements

| | |
|---|---|
| Kubernetes | {kubernetes}: PodDisruptionBudgets with `unhealthyPodEvictionPolicy` |
| Helm | 3.14 or newer |
| Permissions | to create ClusterRoles, APIServices and a RoleBinding in `kube-system` |
| GPU exporters | any of the [supported exporters](../../docs/metrics.md#exporter-names), or their series in a Prometheus |
| Prometheus operator | its CRDs, if `serviceMonitor.enabled` or `alerts.enabled` is set |
| cert-manager | if `certificate.mode` is `certManager` |
| A network that enforces policies | if `networkPolicy.enabled` is set |

## Install

```sh
helm install gpu-metrics-adapter charts/gpu-metrics-adapter --namespace gpu-metrics --create-namespace --set image.repository=IMAGE
```

IMAGE is the name under which you built and pushed the image. In a cluster with one of the common
exporters nothing else needs to be set. The notes that Helm prints explain how to check the
installation. [Troubleshooting](../../docs/troubleshooting.md) is organized by symptom. The chart never
takes over an APIService that belongs to another Service: the installation stops and names it.

On OpenShift the pods run as a user of their namespace, as `restricted-v2` requires. When you render
without access to the cluster, add `helm template --api-versions security.openshift.io/v1`.

If another team owns accounts and roles, set `rbac.create` and the `serviceAccount.create` of each
component to false and name the accounts. Run `helm template --dry-run=server` with both set to true: its
accounts, roles and bindings are what that team creates. `namespaceOverride` puts all objects into an existing namespace other
than that of the release.

If kube-apiserver cannot reach pods, as on EKS with an overlay network, set `hostNetwork.enabled` and
open `hostNetwork.port` of the nodes to it.

Names from other charts are answered with those of this chart: `replicaCount`, for example, with `replicas`.

The manifests state the reason for each permission of each ServiceAccount, rule by rule. A permission
exists only if an enabled value needs it:

```sh
helm template gpu-metrics-adapter charts/gpu-metrics-adapter --show-only templates/rbac.yaml
```

## Upgrade and roll back

```sh
helm upgrade gpu-metrics-adapter charts/gpu-metrics-adapter --namespace gpu-metrics --reset-then-reuse-values
helm rollback gpu-metrics-adapter --namespace gpu-metrics
```

A new pod is ready before an old one stops, and it becomes ready only once it has values, so requests
are answered throughout. A change of `config.source`, `config.values` and other sections that running
pods reload replaces no pod. Certificates are not part of a revision: neither command changes them.
`--reuse-values` alone would lack the defaults of new keys. A release from the time when the chart kept
a certificate for ten years in its manifest is upgraded the same way: both CAs are trusted until every
pod has the new certificate. A rollback to such a revision has no transition: metrics are unavailable
until its pods have replaced the others. An upgrade that turns the view API on registers it before the
first new pod is ready. Until then its APIService is unavailable, and namespaces that are deleted wait.

## Uninstall

```sh
helm uninstall gpu-metrics-adapter --namespace gpu-metrics
```

A hook first deletes the APIServices, because an APIService without pods behind it blocks the deletion of
every namespace in the cluster. From then on, HPAs on these metrics keep their current replica count.
Headroom that `nodepool` has ordered is deleted after its `lifeline`, 15 minutes. The namespace remains.
If the hook's pod cannot run, for example because the image cannot be pulled, the uninstallation stops
after four minutes; run `helm uninstall --no-hooks` then. Helm's `--atomic` meets the same when it cleans
up a failed installation.

## GitOps

[GitOps](../../docs/gitops.md) has manifests for Argo CD, Flux and kustomize, and lists what the adapter writes itself.

## Values

`values.schema.json` rejects unknown keys and invalid values, with a message that names them.
`config` holds the adapter's own [settings](../../docs/settings.md).
"""  # noqa: E501 - tables and commands


def page() -> str:
    """The whole README."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    kubernetes = chart["kubeVersion"].removeprefix(">=").removesuffix(".0-0") + " or newer"
    top = _TOP.format(description=chart["description"], kubernetes=kubernetes)
    return "\n".join([top, *_tables()])


def _tables() -> Iterator[str]:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = list(chartvalues.read((CHART / "values.yaml").read_text(encoding="utf-8")))
    # Keys without a section come first, in one table.
    values.sort(key=lambda value: len(value.path) > 1)
    groups = itertools.groupby(values, key=lambda value: value.path[0] if value.path[1:] else "")
    for section, rows in groups:
        yield f"### {section}" if section else "### The release and its pods"
        yield ""
        yield "| Key | Type | Default | Meaning |"
        yield "|---|---|---|---|"
        for value in rows:
            kind = chartvalues.type_of(value.path, schema)
            cells = (f"`{value.key}`", kind, f"`{value.default}`", value.meaning)
            row = " | ".join(cell.replace("|", r"\|") for cell in cells)
            yield f"| {row} |"
        yield ""
