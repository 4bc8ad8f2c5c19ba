"""Checks of what exporters' pages say: pods, fields, values, limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.exposition.limits import EXPORTER
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.checks.hpas import metrics
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import CheckSection, Finding, Severity, check
from adapter.tools.doctor.page import ExporterPage
from adapter.tools.doctor.pagefaults import usable_pages
from adapter.tools.doctor.podcommands import delete, logs, set_env, show
from adapter.tools.doctor.scaletargets import pods_of, target_of
from adapter.tools.doctor.scrapes import exporters

_UTIL: Final = frozenset(
    field
    for formula in servedmetrics.CATALOG.metrics["gpu_utilization"].formulas
    for field in formula.fields
)
_ENGINE: Final = frozenset({"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu_gfx_busy_instantaneous"})
_NEAR: Final = 0.8
_REJECTED: Final = 0.05
_DUPLICATE: Final = "duplicate_label"
"""A line with this is kept."""


def _pages(facts: Facts) -> Iterator[tuple[SeenPod, ExporterPage]]:
    pods = [pod for pod, rule in exporters(facts) if rule.family != "hami"]
    yield from usable_pages(facts, pods, facts.pages.read())


@check("GMA121", CheckSection.EXPORTERS, "pages name the pods that hold GPUs")
def no_pods(facts: Facts) -> Iterator[Finding]:
    """The page names no pod, although pods hold GPUs: the mapping of GPUs to pods is off, or the
    exporter cannot reach the kubelet's socket.

    dcgm-exporter needs `DCGM_EXPORTER_KUBERNETES=true` and the directory
    `/var/lib/kubelet/pod-resources` of its node.
    """
    holders = {pod.pod.node for pod in facts.gpu_pods if pod.runs and pod.pod.ready}
    for pod, page in _pages(facts):
        if page.devices and page.node in holders and not page.named:
            yield Finding(
                pod.subject,
                f"its page names no pod, and pods on node {page.node} hold GPUs",
                *set_env(
                    facts,
                    pod,
                    "turn the mapping of GPUs to pods on",
                    "DCGM_EXPORTER_KUBERNETES",
                    "true",
                ),
            )


@check("GMA122", CheckSection.EXPORTERS, "pages have GPU utilization")
def no_utilization(facts: Facts) -> Iterator[Finding]:
    """A page has devices, and no field from which `gpu_utilization` is computed.

    Add `DCGM_FI_DEV_GPU_UTIL` to the exporter's CSV file of counters (`docs/metrics.md` lists the
    fields of other vendors).
    """
    for pod, page in _pages(facts):
        whole = [device for device in page.devices if not device.mig]
        if whole and not page.fields & _UTIL:
            yield Finding(
                pod.subject,
                f"its page has no GPU utilization (it has {len(page.fields)} known fields)",
                "add DCGM_FI_DEV_GPU_UTIL to the exporter's list of counters",
                f"kubectl -n {pod.pod.ref.namespace} get configmaps",
            )


@check("GMA123", CheckSection.EXPORTERS, "pages with MIG instances have their engine activity")
def no_profiling(facts: Facts) -> Iterator[Finding]:
    """GPU utilization of MIG instances comes from `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, which the page
    lacks: profiling counters are off, or another profiler holds them.

    Add the field to the list of counters. Profiling counters need `SYS_ADMIN` in the exporter's
    container.
    """
    for pod, page in _pages(facts):
        instances = [device for device in page.devices if device.mig]
        if instances and not page.fields & _ENGINE:
            yield Finding(
                pod.subject,
                f"its page has {len(instances)} MIG instances and no engine activity",
                "add DCGM_FI_PROF_GR_ENGINE_ACTIVE to the exporter's list of counters",
                logs(pod),
            )


@check("GMA124", CheckSection.EXPORTERS, "exporters have the fields that HPAs need")
def not_exported(facts: Facts) -> Iterator[Finding]:
    """An HPA asks for a metric, and no exporter on the nodes of its pods writes a field from which
    it is computed.

    Add the field to the exporter's list of counters, or use another metric.
    """
    pages = [page for _, page in _pages(facts)]
    for hpa, metric in metrics(facts):
        about = servedmetrics.CATALOG.metrics.get(metric.name)
        target = target_of(facts, hpa)
        if about is None or target is None or about.scope is not Scope.DEVICE:
            continue
        needed = {field for formula in about.formulas for field in formula.fields}
        nodes = {pod.pod.node for pod in pods_of(facts, target) if pod.pod.holds_gpu}
        on = [page for page in pages if page.node in nodes and page.devices]
        basic = {"gpu_utilization", "gpu_count"}
        if not on or metric.name in basic or any(page.fields & needed for page in on):
            continue
        field = about.formulas[0].fields[0]
        yield Finding(
            hpa.subject,
            f"asks for {metric.name}, and no exporter of its pods writes {field}",
            "add the field to the exporter's list of counters, or use another metric",
            "kubectl get configmaps -A | grep -i dcgm",
        )


@check("GMA125", CheckSection.EXPORTERS, "pages name pods of their own node", Severity.WARNING)
def strangers(facts: Facts) -> Iterator[Finding]:
    """The page names a pod that does not exist, or that runs on another node. The adapter leaves
    these samples out. A single finished pod is harmless (until Kubernetes 1.34).

    Restart the exporter if it lasts.
    """
    nodes = {pod.key: pod.pod.node for pod in facts.pods.read() if not pod.pod.finished}
    for pod, page in _pages(facts):
        wrong = sorted(name for name in page.named if nodes.get(name) != page.node)
        if wrong:
            more = f" and {len(wrong) - 2} more" if len(wrong) > 2 else ""
            yield Finding(
                pod.subject,
                f"its page names {', '.join(wrong[:2])}{more}, not on node {page.node}",
                "restart the exporter if this lasts",
                delete(pod),
            )


@check("GMA126", CheckSection.EXPORTERS, "pages have valid values")
def blank_values(facts: Facts) -> Iterator[Finding]:
    """Every utilization sample of a device is DCGM's sign for "no value", not a number, or out of
    range.

    Restart the host engine of DCGM, or the exporter. See the driver's log for errors of the device.
    """
    for pod, page in _pages(facts):
        ids = [d.id for d in page.devices if d.blank & _UTIL and not d.series & _UTIL]
        if ids:
            yield Finding(
                pod.subject,
                f"{len(ids)} of {len(page.devices)} devices have no valid utilization, such as "
                f"{ids[0]}",
                "restart the exporter, and see the driver's log",
                delete(pod),
            )


@check("GMA127", CheckSection.EXPORTERS, "GPUs report no XID errors", Severity.WARNING)
def xids(facts: Facts) -> Iterator[Finding]:
    """A device reports an XID error, until the driver is loaded again. XID 13, 31 and 45 usually
    come from the program; 48, 63, 64, 79, 94 and 95 from the hardware.

    Look the code up in NVIDIA's "XID Errors". Drain the node if it is a hardware error.
    """
    for _, page in _pages(facts):
        codes = {device.id: device.xid for device in page.devices if device.xid}
        if codes:
            device, code = min(codes.items())
            more = f", and {len(codes) - 1} more devices report one" if len(codes) > 1 else ""
            yield Finding(
                f"node {page.node}",
                f"device {device} reports XID error {code}{more}",
                "look the code up; drain the node if it is a hardware error",
                f"kubectl describe node {page.node}",
            )


@check("GMA128", CheckSection.EXPORTERS, "pages are well within the limits", Severity.WARNING)
def large_pages(facts: Facts) -> Iterator[Finding]:
    """The page has more than 80 % of the bytes or samples that the adapter accepts
    (`docs/limits.md`).

    Raise `source.scrape.max_bytes`, or remove counters and labels that nobody uses.
    """
    most = facts.settings.source.scrape.max_bytes
    for pod, page in _pages(facts):
        if page.size > _NEAR * most:
            text = f"its page has {page.size} of {most} bytes"
        elif page.samples > _NEAR * EXPORTER.samples:
            text = f"its page has {page.samples} of {EXPORTER.samples} samples"
        else:
            continue
        yield Finding(
            pod.subject,
            text,
            "raise source.scrape.max_bytes, or remove counters and labels",
            show(pod),
        )


@check("GMA129", CheckSection.EXPORTERS, "pages are well formed", Severity.WARNING)
def malformed_pages(facts: Facts) -> Iterator[Finding]:
    """The adapter cannot read more than 5 % of the lines of a page.

    `docs/troubleshooting.md` explains each reason. Upgrade the exporter.
    """
    for pod, page in _pages(facts):
        lost = {k: n for k, n in page.rejects.items() if k != _DUPLICATE}
        total = sum(lost.values())
        if total > _REJECTED * (total + page.samples):
            reason = max(lost, key=lambda key: lost[key])
            yield Finding(
                pod.subject,
                f"{total} lines of its page cannot be read, most of them by {reason}",
                "see the reason in docs/troubleshooting.md, and upgrade the exporter",
                logs(pod),
            )
