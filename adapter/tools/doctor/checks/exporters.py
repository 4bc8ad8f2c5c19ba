"""Checks of exporters' pods: there is one per GPU node, and it answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from adapter.answers.causes import Cause, cause_of_daemonset, causes_of_pod
from adapter.answers.causes.gpunodes import gpus_of
from adapter.config.settings import discovery
from adapter.pipeline.cluster.gpuresources import vendor_of
from adapter.pipeline.cluster.nodelabels import NVIDIA
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.changedobjects import workload, workload_of
from adapter.tools.doctor.daemonsets import SeenDaemonSet, obstacle
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.hpacauses import cluster
from adapter.tools.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.pagefaults import troubled_pages
from adapter.tools.doctor.podcommands import describe, logs, owner, show, show_page
from adapter.tools.doctor.scrapes import exporters


def require_scraping(facts: Facts) -> None:
    """Raise NotApplicableError if the adapter does not read exporters itself."""
    if facts.settings.source.kind == "azure_logs":
        raise NotApplicableError("the adapter reads Azure's logs, not exporters")


@check("GMA101", CheckSection.EXPORTERS, "every GPU node has an exporter")
def missing_exporters(facts: Facts) -> Iterator[Finding]:
    """A node offers GPUs and no exporter runs on it, so its pods have no value. The finding names
    the exporter's DaemonSet and the label or taint that keeps it from the node.

    Without a DaemonSet, deploy the exporter of the vendor. Name an exporter with other labels than
    the common charts' in `source.scrape.exporters`.
    """
    require_scraping(facts)
    nodes, resources = facts.nodes.read(), facts.gpu_resources
    if facts.settings.source.scrape.targets:
        raise NotApplicableError("the settings name exporters at fixed addresses")
    covered = {pod.pod.node for pod, _ in exporters(facts)}
    any_uncovered = False
    for node in nodes:
        gpus = gpus_of(node, resources)
        if gpus and node.name not in covered:
            any_uncovered = True
            yield _without_exporter(facts, node, gpus)
    if any_uncovered:
        facts.daemonsets.read()


def _without_exporter(facts: Facts, node: SeenNode, gpus: Iterable[str]) -> Finding:
    """Return the finding for a node, with the DaemonSet that should have a pod on it."""
    text = "offers GPUs, and no exporter runs on it: its pods have no value"
    daemonset = _daemonset(facts, gpus)
    if daemonset is None:
        return Finding(
            f"node {node.name}",
            text,
            "deploy the exporter to this node, or name it in source.scrape.exporters",
            f"kubectl get pods -A -o wide --field-selector spec.nodeName={node.name}",
        )
    of = workload(facts, "DaemonSet", daemonset.namespace, daemonset.name)
    message, fix, action = obstacle(daemonset, node, of)
    if of_events := _refusal_cause(facts, daemonset):
        message = f"DaemonSet {daemonset.key}: {of_events.text}"
        fix, action = of_events.fix, of_events.command
    return Finding(f"node {node.name}", f"{text}. {message}", fix, action)


def _refusal_cause(facts: Facts, daemonset: SeenDaemonSet) -> Cause | None:
    """Return why the API server refuses the pods of a DaemonSet, if it does."""
    try:
        around = cluster(facts)
    except UnreadError:
        return None
    place = (daemonset.namespace, daemonset.name)
    return cause_of_daemonset(around, *place, daemonset.manager, 1)


_VENDORS: Final = {"gke": NVIDIA, "gke-plugin": NVIDIA, "hami": ""}
"""Family of exporters -> vendor of the devices that they describe, if its name is another; empty if
they are of several vendors."""


def _daemonset(facts: Facts, gpus: Iterable[str]) -> SeenDaemonSet | None:
    """Return the first DaemonSet of an exporter for the vendor of these resources."""
    rules = discovery.exporter_rules(facts.settings)
    vendors = {*map(vendor_of, gpus)}
    for daemonset in (facts.daemonsets.value or ()) if facts.daemonsets.known else ():
        rule = next((rule for rule in rules if rule.matches(daemonset.pod.pod)), None)
        if rule is not None and _VENDORS.get(rule.family, rule.family) in {*vendors, ""}:
            return daemonset
    return None


@check("GMA102", CheckSection.EXPORTERS, "exporters run")
def not_running(facts: Facts) -> Iterator[Finding]:
    """An exporter's pod is not Running, or its container restarts again and again.

    See the log and the events of the pod, unless its state says why: memory, image, volume.
    """
    for pod, _ in exporters(facts):
        waiting = [s.state.waiting.reason for s in pod.status.container_statuses if s.state.waiting]
        reason = next(filter(None, waiting), "")
        if pod.runs and not reason:
            continue
        if pod.pod.deleting:
            continue
        text = (
            f"the exporter on node {pod.pod.node or '-'} is {reason or pod.pod.phase or 'Pending'}"
        )
        if (cause := _cause(facts, pod)) is None:
            yield Finding(pod.subject, text, "see why the exporter does not start", describe(pod))
        else:
            yield Finding(pod.subject, f"{text}: {cause.text}", cause.fix, cause.command)


def _cause(facts: Facts, pod: SeenPod) -> Cause | None:
    """Return the first cause that the state of an exporter's pod shows; None without one."""
    try:
        around = cluster(facts)
    except UnreadError:
        return None
    of = workload_of(facts, pod)
    causes = causes_of_pod(around, pod, of.manager if of is not None else None)
    return causes[0] if causes else None


def _troubled_pages(facts: Facts, *kinds: Trouble) -> Iterator[tuple[SeenPod, ExporterPage]]:
    pods = [pod for pod, _ in exporters(facts)]
    return troubled_pages(facts, pods, facts.pages.read(), *kinds)


@check("GMA103", CheckSection.EXPORTERS, "exporters answer")
def silent_exporters(facts: Facts) -> Iterator[Finding]:
    """An exporter hangs, listens on another port or address, or a NetworkPolicy is in the way.

    Compare the port of the container with the one on which the exporter listens.
    """
    for pod, page in _troubled_pages(facts, Trouble.REFUSED, Trouble.TIMEOUT):
        yield Finding(
            pod.subject,
            f"the exporter on node {page.node} does not answer at {page.url}: {page.detail}",
            "see where it listens, and name the port in source.scrape.exporters",
            logs(pod),
        )


@check("GMA104", CheckSection.EXPORTERS, "exporters answer with metrics")
def no_page(facts: Facts) -> Iterator[Finding]:
    """An exporter answers with an HTTP error, HTML, or no known series: it needs credentials, the
    path is wrong, another program has the port, or it reads no device.

    With status 401 or 403, set `authorization` or `basic_auth` in a rule of
    `source.scrape.exporters`. Otherwise open the page.
    """
    wrong = (Trouble.STATUS, Trouble.HTML, Trouble.EMPTY, Trouble.TOO_LARGE)
    for pod, page in _troubled_pages(facts, *wrong):
        detail, _, fix = page.detail.partition("; ")
        yield Finding(
            pod.subject,
            f"the exporter on node {page.node} answers at {page.url}: {detail}",
            fix or "see what the page says, and the exporter's log",
            show_page(pod, page),
        )


@check("GMA105", CheckSection.EXPORTERS, "exporters answer over plain HTTP, or are set to HTTPS")
def https(facts: Facts) -> Iterator[Finding]:
    """The port of an exporter expects TLS, and the rule that finds it says `http`.

    Set `scheme: https` and `tls_config` in a rule of `source.scrape.exporters`, or annotate the
    pods with `gpu-metrics-adapter.io/scheme: https`.
    """
    for pod, page in _troubled_pages(facts, Trouble.HTTPS):
        yield Finding(
            pod.subject,
            f"the exporter on node {page.node} expects HTTPS at {page.url}",
            "name it in source.scrape.exporters with scheme: https and tls_config",
            show(pod),
        )


@check("GMA106", CheckSection.EXPORTERS, "one exporter describes each node", Severity.WARNING)
def two_exporters(facts: Facts) -> Iterator[Finding]:
    """Two exporters of one vendor run on a node, such as the chart's and the GPU operator's. In
    Prometheus, series double.

    Remove one, for example with `dcgmExporter.enabled=false` in the GPU operator.
    """
    on: dict[tuple[str, str], list[SeenPod]] = defaultdict(list)
    for pod, rule in exporters(facts):
        if pod.runs and rule.family:
            on[pod.pod.node, rule.family].append(pod)
    for (node, _), pods in on.items():
        if len(pods) > 1:
            names = ", ".join(pod.key for pod in pods)
            last = pods[-1]
            yield Finding(
                f"node {node}",
                f"{len(pods)} exporters of one vendor run on it: {names}",
                "keep one of them",
                f"kubectl -n {last.pod.ref.namespace} get {owner(last)} -o wide",
            )
