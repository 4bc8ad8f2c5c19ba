"""The steps of a move, with the names of this cluster."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from adapter.tools.migrate.options import RELEASE, MigrateOptions
from adapter.tools.migrate.peer import PeerAdapter
from adapter.tools.migrate.values import CONFIGMAP, KEY

GUIDE: Final = "docs/migrate-from-prometheus-adapter.md"
_COMMAND: Final = "gpu-metrics-adapter migrate prometheus-adapter"


def steps(
    options: MigrateOptions, peer: PeerAdapter | None, *, resource: bool = False
) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the steps in their order: what it is for, and its commands.

    Args:
        options: of the command.
        peer: the installation; None if only its configuration is known.
        resource: whether the values turn on metrics.k8s.io, whose server is then not known.
    """
    namespace, name = options.target_namespace, options.target_name
    copy = f"kubectl -n {namespace} create configmap {CONFIGMAP} --from-file={KEY}=rules.yaml"
    install = (
        f"helm install {name} charts/gpu-metrics-adapter -n {namespace} --values values.yaml "
        "--set image.repository=IMAGE --set apiServices.create=false"
    )
    upgrade = (
        f"helm upgrade {name} charts/gpu-metrics-adapter -n {namespace} --reuse-values "
        "--set apiServices.create=true"
    )
    if peer is None:
        command = f"{_COMMAND} -f {shlex.quote(str(options.file))}"
        unless = "unless it is prometheus-adapter, leave resourceMetrics out of values.yaml"
        look = (
            f"see who serves metrics.k8s.io, which has one server: {unless}",
            ["kubectl get apiservice v1beta1.metrics.k8s.io"],
        )
        first = _first(command, namespace, copy, install)
        return [*([look] if resource else []), *first, (f"go on as {GUIDE} describes", [])]
    target = "" if options.release == RELEASE else f" --release {options.release}"
    where = f" -n {shlex.quote(options.namespace)}" if options.namespace else ""
    command = f"{_COMMAND}{where}{target}"
    secret = (
        f"kubectl -n {namespace} get secret {name}-certificate -o jsonpath='{{.data.ca\\.crt}}' | "
        "base64 -d > ca.crt"
    )
    forward = f"kubectl -n {namespace} port-forward service/{name} 8443:443"
    release = f"Helm release {peer.release}" if peer.release else "what installs it"
    return [
        *_first(command, namespace, copy, install),
        (
            "compare the values",
            [secret, forward, f"{command} --compare --ours https://localhost:8443 --ca ca.crt"],
        ),
        (
            "move the APIServices",
            [
                f"{command} -o apiservices-before > theirs.yaml",
                f"{command} -o apiservices --ca ca.crt > ours.yaml",
                "kubectl replace -f ours.yaml",
            ],
        ),
        (f"take the APIServices out of {release}, as {GUIDE} describes", []),
        ("take the APIServices over", [upgrade]),
        (
            "the way back, as long as prometheus-adapter is installed",
            ["kubectl replace -f theirs.yaml"],
        ),
        (f"uninstall prometheus-adapter, or go back after that, as {GUIDE} describes", []),
    ]


def _first(
    command: str, namespace: str, copy: str, install: str
) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the steps up to both programs beside each other."""
    created = f"kubectl create namespace {namespace}"
    return [
        (
            "copy the rules, which prometheus-adapter's release would take along",
            [f"{command} -o rules > rules.yaml", created, copy],
        ),
        ("install beside prometheus-adapter", [f"{command} -o values > values.yaml", install]),
    ]
