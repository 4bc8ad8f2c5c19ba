"""Checks of the adapter's own metrics: replicas, memory, certificate, rejected samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.hpa import quantity
from adapter.tools.doctor.checks.ours import require_release
from adapter.tools.doctor.facts import Facts, SelfPage
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    NotApplicableError,
    Severity,
    check,
)

_WEEKS: Final = 14 * 86400.0
_MEMORY: Final = 0.85
_SHARE: Final = 0.05
_APART: Final = 0.2
_COUNTS: Final = {
    "gma_snapshot_devices": "devices",
    "gma_exporters": "exporters",
    "gma_pods": "pods",
}
_EXPIRY: Final = "gma_certificate_expiry_timestamp_seconds"
_RENEWALS: Final = {
    "serving": (
        "renew it: run the certificates CronJob of the chart",
        "kubectl -n {namespace} create job renew-$(date +%s) --from=cronjob/{cronjob}",
    ),
    "keda": (
        "renew the files of keda.tls",
        "kubectl -n {namespace} get secrets,certificates",
    ),
    "front-proxy": (
        "renew the API server's --proxy-client-cert-file, or ask the provider of the cluster",
        "kubeadm certs renew front-proxy-client # on each control plane node",
    ),
    "client-ca": (
        "replace the cluster's CA on the control plane, or ask the provider of the cluster",
        "kubeadm certs check-expiration # on a control plane node",
    ),
}
"""Certificate -> advice and command. GMA003 judges the front proxy's CA, by the ConfigMap."""


def replica_pages(facts: Facts) -> list[SelfPage]:
    """Return the own metrics of the replicas; raises NotApplicableError without one."""
    require_release(facts)
    pages = list(facts.self_pages.read())
    if not pages:
        raise NotApplicableError("no replica of the adapter runs")
    return pages


def metrics_log(facts: Facts, page: SelfPage) -> str:
    """Return the command that prints the log of a replica."""
    meta = require_release(facts).workload.metadata
    return f"kubectl -n {meta.namespace} logs {page.pod} --tail=20"


@check("GMA711", CheckSection.OURS, "replicas agree", Severity.WARNING)
def replicas_disagree(facts: Facts) -> Iterator[Finding]:
    """The replicas see different numbers of pods, exporters or devices, so an HPA gets another
    value from each.

    See the log of the replica with the smaller number: it does not reach some exporters, or its
    watch is behind.
    """
    pages = replica_pages(facts)
    for name, words in _COUNTS.items():
        values = {page.pod: value for page in pages if (value := page.sum(name)) is not None}
        low = min(values, key=lambda pod: values[pod], default="")
        high = max(values, key=lambda pod: values[pod], default="")
        if values and values[low] < values[high] * (1 - _APART):
            namespace = require_release(facts).workload.metadata.namespace
            yield Finding(
                f"pod {low}",
                f"sees {values[low]:.0f} {words}, and {high} sees {values[high]:.0f}",
                "see the log of this replica",
                f"kubectl -n {namespace} logs {low} --tail=20",
            )
            return


@check("GMA712", CheckSection.OURS, "memory is well below its limit", Severity.WARNING)
def memory(facts: Facts) -> Iterator[Finding]:
    """A replica uses more than 85 % of its memory limit, at which the kernel kills it.

    Raise `resources.limits.memory`. `docs/limits.md` lists what bounds the memory.
    """
    release = require_release(facts)
    limits = [
        quantity.parse(container.resources.limits["memory"])
        for container in release.workload.spec.template.spec.containers
        if "memory" in container.resources.limits
    ]
    if not limits:
        raise NotApplicableError("the adapter has no memory limit")
    for page in replica_pages(facts):
        used = page.sum("process_resident_memory_bytes")
        if used is not None and used > _MEMORY * float(limits[0]):
            mib = 1 << 20
            meta = release.workload.metadata
            yield Finding(
                f"pod {page.pod}",
                f"uses {used / mib:.0f} MiB of {float(limits[0]) / mib:.0f} MiB",
                "raise resources.limits.memory in the values of the chart",
                f"kubectl -n {meta.namespace} top pod {page.pod}",
            )


@check(
    "GMA713",
    CheckSection.OURS,
    "the certificates in use are valid for 14 more days",
)
def certificate(facts: Facts) -> Iterator[Finding]:
    """When the serving certificate ends, the API server rejects the adapter; when the API server's
    own (`front-proxy`) or its CA ends, the adapter rejects the API server. HPAs lose their metrics.

    For the serving certificate, run the chart's CronJob, and see the log of its last Job, or
    cert-manager's Certificate. The others are files of the control plane (`kubeadm certs renew
    front-proxy-client`).
    """
    meta = require_release(facts).workload.metadata
    soonest: dict[str, tuple[float, str]] = {}
    for page in replica_pages(facts):
        for name, ends in page.by_label(_EXPIRY, "certificate").items():
            soonest[name] = min(soonest.get(name, (ends, page.pod)), (ends, page.pod))
    for name, (ends, pod) in soonest.items():
        if ends - facts.now >= _WEEKS or name not in _RENEWALS:
            continue
        days = (ends - facts.now) / 86400
        text = f"ends in {days:.1f} days" if days > 0 else f"ended {-days:.1f} days ago"
        advice, command = _RENEWALS[name]
        yield Finding(
            f"pod {pod}",
            f"the certificate {name} {text}",
            advice,
            command.format(namespace=meta.namespace, cronjob=f"{meta.name[:39]}-certificates"),
            Severity.WARNING if days > 0 else Severity.ERROR,
        )


@check("GMA714", CheckSection.OURS, "few samples are rejected", Severity.WARNING)
def rejects(facts: Facts) -> Iterator[Finding]:
    """For one reason, more than one sample or value for every 20 devices and scrapes was left out
    since the start. Some are normal while pods come and go.

    `docs/troubleshooting.md` explains each reason.
    """
    for page in replica_pages(facts):
        series, scrapes = page.sum("gma_snapshot_series"), page.sum("gma_scrapes_total")
        targets = page.sum("gma_scrape_targets")
        counts = page.by_label("gma_rejects_total", "reason")
        if not (series and scrapes and targets and counts):
            continue
        expected = series * scrapes / targets
        reason, count = max(counts.items(), key=lambda row: row[1])
        if count > _SHARE * expected and count > 100:
            yield Finding(
                f"pod {page.pod}",
                f"has left out {count:.0f} samples or values, most of them by {reason}",
                "see this reason in docs/troubleshooting.md",
                metrics_log(facts, page),
            )
            return
