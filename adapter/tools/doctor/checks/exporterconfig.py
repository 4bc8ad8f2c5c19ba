"""Checks of how exporters are configured: interval, version, mounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import CheckSection, Finding, Severity, check
from adapter.tools.doctor.podcommands import owner, set_env, show
from adapter.tools.doctor.scrapes import exporters

DCGM: Final = ("nvidia", "gke")
"""Families of dcgm-exporter."""
SYNC: Final = 15.0
"""Seconds between two decisions of the HPA controller, by default."""
_TAG: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)-(\d+)\.(\d+)\.(\d+)")
_ADDED: Final = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"
_VIRTUAL: Final = "KUBERNETES_VIRTUAL_GPUS"
_INTERVAL: Final = "DCGM_EXPORTER_INTERVAL"


_DEFAULT: Final = 30.0
"""Seconds between two readings of a dcgm-exporter without an interval of its own."""


def interval_of(pod: SeenPod) -> float | None:
    """Return the seconds between two readings of a dcgm-exporter; None if nothing sets them."""
    for container in pod.spec.containers:
        for word, after in pairwise([*container.command, *container.args, ""]):
            name, _, value = word.partition("=")
            if name in ("-c", "--collect-interval"):
                return _milliseconds(value or after)
        interval = container.variable(_INTERVAL)
        if interval:
            return _milliseconds(interval)
    return None


def _milliseconds(text: str) -> float | None:
    return int(text) / 1000 if text.isascii() and text.isdigit() else None


def _template(facts: Facts, pod: SeenPod) -> SeenPod | None:
    """Return the pod that the DaemonSet of a pod makes now; None if it is not known."""
    rows = facts.daemonsets.value if facts.daemonsets.known else ()
    owner_name = owner(pod)
    mine = (row for row in rows or () if row.namespace == pod.pod.ref.namespace)
    return next((row.pod for row in mine if f"daemonset/{row.name}" == owner_name), None)


@check(
    "GMA107",
    CheckSection.EXPORTERS,
    "exporters read GPUs as often as HPAs decide",
    Severity.WARNING,
)
def slow_exporters(facts: Facts) -> Iterator[Finding]:
    """dcgm-exporter reads its GPUs every 30 s by default, and an HPA decides every 15 s: twice on
    the same value.

    Set the interval to 5 to 10 s, and `values.collect_interval` to the same. The DaemonSet then
    replaces its pods.
    """
    by_owner: dict[tuple[str, str, float | None], list[SeenPod]] = {}
    for pod, rule in exporters(facts):
        seconds = interval_of(pod)
        if rule.family in DCGM and (_DEFAULT if seconds is None else seconds) > SYNC:
            # Pods without a workload have one fix too.
            owner_name = owner(pod) if pod.pod.owner is not None else "pods without a workload"
            by_owner.setdefault((pod.pod.ref.namespace, owner_name, seconds), []).append(pod)
    for (namespace, owner_name, seconds), pods in by_owner.items():
        yield _slow_finding(facts, namespace, owner_name, seconds, pods)


def _slow_finding(
    facts: Facts, namespace: str, owner_name: str, seconds: float | None, pods: list[SeenPod]
) -> Finding:
    count = f"{len(pods)} pods" if len(pods) > 1 else f"pod {pods[0].pod.ref.name}"
    subject = f"{owner_name} in {namespace} ({count})"
    says = f"{seconds:g} s" if seconds is not None else "30 s, the default (no interval is set)"
    message = f"reads its GPUs every {says}, and HPAs decide every {SYNC:g} s"
    template = _template(facts, pods[0])
    wanted = interval_of(template) if template is not None else None
    if wanted is not None and wanted <= SYNC:
        return Finding(
            subject,
            f"{message}; its template says {wanted:g} s, which these pods do not have yet",
            "wait until the pods are replaced, or replace them",
            f"kubectl -n {namespace} rollout restart {owner_name}",
        )
    return Finding(
        subject,
        message,
        *set_env(
            facts,
            pods[0],
            "set the interval to 10 s, and config.values.collect_interval in the values of the "
            "adapter's chart to 10s",
            _INTERVAL,
            "10000",
        ),
    )


def version_of(pod: SeenPod) -> tuple[int, int, int] | None:
    """Return the version of a dcgm-exporter, the second one in its tag."""
    for container in pod.spec.containers:
        match = _TAG.search(container.image)
        if match and "dcgm-exporter" in container.image:
            return int(match[4]), int(match[5]), int(match[6])
    return None


@check("GMA108", CheckSection.EXPORTERS, "exporters have no known error", Severity.WARNING)
def bad_version(facts: Facts) -> Iterator[Finding]:
    """Up to dcgm-exporter 4.8.1, a pod's label named `pod` or `namespace` replaces the exporter's
    own if `DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS` is on. From 4.0.3 to 4.8.1,
    `KUBERNETES_VIRTUAL_GPUS` copies the device's value to every pod that shares it.

    Upgrade to 4.8.2 or newer, or turn the option off.
    """
    reported = set()
    for pod, rule in exporters(facts):
        version, name = version_of(pod), (pod.pod.ref.namespace, owner(pod))
        if version is None or rule.family not in DCGM or version >= (4, 8, 2) or name in reported:
            continue
        for option, since, why in (
            (_ADDED, (0, 0, 0), "a pod's label may take the place of the label that names the pod"),
            (_VIRTUAL, (4, 0, 3), "every pod on a shared GPU gets the value of the whole GPU"),
        ):
            on = any(c.variable(option) == "true" for c in pod.spec.containers)
            if on and version >= since:
                reported.add(name)
                yield Finding(
                    f"{name[1]} in {name[0]}",
                    f"dcgm-exporter {'.'.join(map(str, version))} with {option}: {why}",
                    *set_env(
                        facts,
                        pod,
                        "upgrade it to 4.8.2 or newer, or turn the option off",
                        option,
                        None,
                    ),
                )


@check(
    "GMA109",
    CheckSection.EXPORTERS,
    "exporters can prove that they are exporters",
    Severity.WARNING,
)
def unproven_exporters(facts: Facts) -> Iterator[Finding]:
    """An exporter mounts no directory of its node, while others do. The adapter does not scrape it:
    a tenant can create such a pod.

    Name the exporter in `source.scrape.exporters` with its namespace.
    """
    pairs = [(pod, rule) for pod, rule in exporters(facts) if rule.family]
    if not any(pod.pod.host_paths for pod, _ in pairs):
        return
    for pod, rule in pairs:
        if not pod.pod.host_paths and pod.runs:
            yield Finding(
                pod.subject,
                "mounts no directory of its node, unlike the other exporters: it is not scraped",
                f"name it in source.scrape.exporters with namespace {pod.pod.ref.namespace}",
                f"{show(pod)} # found by rule {rule.name}",
            )
