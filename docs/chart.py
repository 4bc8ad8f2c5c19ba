"""Writes the chart's README from its values.yaml, values.schema.json and Chart.yaml."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from docs import chartvalues

CHART = Path(__file__).parents[1] / "charts" / "gpu-metrics-adapter"
_TOP = """\
# gpu-metrics-adapter

<!-- written by `make docs` from values.yaml, values.schema.json and Chart.yaml -->

{description}

## Needed

| | |
|---|---|
| Kubernetes | {kubernetes}: PodDisruptionBudgets with `unhealthyPodEvictionPolicy` |
| Helm | 3.14 or newer |
| Rights | to create ClusterRoles, APIServices and a RoleBinding in `kube-system` |
| GPU exporters | any of [those that are known](../../docs/metrics.md#exporter-names), or their series in a Prometheus |
| Prometheus operator | its CRDs, where `serviceMonitor.enabled` or `alerts.enabled` is set |
| cert-manager | where `certificate.mode` is `certManager` |
| A network that enforces policies | where `networkPolicy.enabled` is set |

## Install

```sh
helm install gpu-metrics-adapter charts/gpu-metrics-adapter --namespace gpu-metrics --create-namespace --set image.repository=IMAGE
```

IMAGE is the name that you built and pushed the image under. Nothing else has to be set in a cluster with one of the usual exporters. The notes that Helm prints
say how to see that it works; [troubleshooting](../../docs/troubleshooting.md) goes by symptom. An
APIService that belongs to somebody else is never taken over: the installation stops and names it.

On OpenShift the pods run as a user of their namespace, as `restricted-v2` wants it. What
renders without the cluster has to be told: `helm template --api-versions security.openshift.io/v1`.

What each account may do stands in the manifests, rule by rule with its reason, and a right is there
only where a value needs it:

```sh
helm template gpu-metrics-adapter charts/gpu-metrics-adapter --show-only templates/rbac.yaml
```

## Upgrade and roll back

```sh
helm upgrade gpu-metrics-adapter charts/gpu-metrics-adapter --namespace gpu-metrics --reset-then-reuse-values
helm rollback gpu-metrics-adapter --namespace gpu-metrics
```

A new pod is ready before an old one goes, and it is ready once it has values, so that requests are
answered throughout. A change of `config.source`, `config.values` and what else the pods take up by
themselves replaces none of them. Certificates belong to no revision: neither command changes them.
`--reuse-values` alone would lack the defaults of keys that are new. A release of the time when the chart
kept a certificate of ten years in its manifest is upgraded the same way: both CAs are trusted until
every pod has the new certificate. A rollback to such a revision is no rotation: values are away
until its pods have replaced the others.

## Uninstall

```sh
helm uninstall gpu-metrics-adapter --namespace gpu-metrics
```

The APIServices go first, by a hook: one without pods behind it keeps every namespace of the
cluster from being deleted. HPAs on these metrics hold their sizes from then on. Headroom that `nodepool`
has ordered ends by itself after its `lifeline`, 15 minutes. The namespace stays. Where the hook's pod
cannot run, as with an image that cannot be pulled (Helm's `--atomic` meets that too when it clears up a
failed installation), the uninstall stops after four minutes and `helm uninstall --no-hooks` goes on.

## GitOps

The same values render the same text each time: nothing in it is drawn by chance. Where no cluster is
seen while rendering (`helm template`, Argo CD), three things differ from `helm install`:

- Nobody looks whether an APIService is somebody else's. See first:
  `kubectl get apiservices v1beta1.custom.metrics.k8s.io v1beta2.custom.metrics.k8s.io`.
- There is no hook that unregisters. Before the pods go, delete the APIServices by hand:
  `kubectl delete apiservices v1beta1.custom.metrics.k8s.io v1beta2.custom.metrics.k8s.io`.
- What keeps the certificate writes into the release's Secrets and the APIServices' `caBundle`. The
  manifests leave these fields out, so that applying them again leaves them alone; tools that compare
  more than they apply have to ignore `/data` of the two Secrets and `/spec/caBundle`.

## Values

Unknown keys are refused by name, and wrong values with what they should be (`values.schema.json`).
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
    # What stands alone comes first, in one table.
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
