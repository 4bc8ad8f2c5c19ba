"""Checks of the adapter's own installation: settings, versions, replicas, memory, certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.doctor.facts import Facts, Release, SelfPage
from adapter.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.hpa import quantity

_WEEKS: Final = 14 * 86400.0
_MEMORY: Final = 0.85
_SHARE: Final = 0.05
_APART: Final = 0.2
_COUNTS: Final = {
    "gma_snapshot_devices": "devices",
    "gma_exporters": "exporters",
    "gma_pods": "pods",
}


def _release(facts: Facts) -> Release:
    found = facts.release.read()
    if found is None:
        raise NotApplicableError("the adapter is not installed")
    return found


def _rollout(found: Release) -> str:
    meta = found.workload.metadata
    return f"kubectl -n {meta.namespace} describe deployment {meta.name}"


@check("GMA701", CheckSection.OURS, "the settings are valid")
def settings(facts: Facts) -> Iterator[Finding]:
    """The ConfigMap of the adapter has a key that does not exist, or a value that it rejects.
    Running pods keep the previous configuration; new pods do not start.

    Correct the key that the message names. `docs/settings.md` lists the settings.
    """
    found = _release(facts)
    meta = found.workload.metadata
    for problem in found.problems:
        yield Finding(
            f"configmap of {meta.namespace}/{meta.name}",
            problem,
            "correct this key under config in the values of the chart",
            f"kubectl -n {meta.namespace} get configmap {meta.name} -o yaml",
        )


@check("GMA702", CheckSection.OURS, "the adapter's pods are ready")
def not_ready(facts: Facts) -> Iterator[Finding]:
    """A replica of the adapter is not ready. It becomes ready when it has listed the pods and
    scraped every exporter once, at the latest after one age limit. Without a ready replica, HPAs
    keep their replica counts.

    See the events and the log of the pod.
    """
    found = _release(facts)
    facts.pods.read()
    wanted = found.workload.spec.replicas
    if wanted and not found.pods:
        text = f"wants {wanted} replicas and has no pod"
        name = f"deployment {found.workload.key}"
        yield Finding(name, text, "see why no pod is created", _rollout(found))
    for each in found.pods:
        if each.pod.ready or each.pod.deleting:
            continue
        statuses = each.status.container_statuses
        waiting = next((s.state.waiting.reason for s in statuses if s.state.waiting), "")
        said = waiting or next(
            (c.message for c in each.status.conditions if c.status == "False" and c.message), ""
        )
        namespace, name = each.pod.ref
        yield Finding(
            f"pod {each.key}",
            f"is {each.pod.phase or 'Pending'} and not ready{': ' if said else ''}{said}",
            "see its events and its log",
            f"kubectl -n {namespace} describe pod {name}",
        )


@check("GMA703", CheckSection.OURS, "the adapter's containers are not killed", Severity.WARNING)
def restarts(facts: Facts) -> Iterator[Finding]:
    """A container of the adapter was killed for its memory (OOMKilled), or has restarted five times
    or more.

    Raise `resources.limits.memory`, or see the log of the previous container.
    """
    for each in _release(facts).pods:
        for status in each.status.container_statuses:
            ended = status.last_state.terminated
            if ended is not None and ended.reason == "OOMKilled":
                said = "was killed for its memory (OOMKilled): raise resources.limits.memory"
            elif status.restart_count >= 5:
                said = f"has restarted {status.restart_count} times"
            else:
                continue
            namespace, name = each.pod.ref
            yield Finding(
                f"pod {each.key}",
                f"container {status.name} {said}",
                "see the log of the previous container, and its memory",
                f"kubectl -n {namespace} logs {name} --previous --tail=20",
            )


@check("GMA704", CheckSection.OURS, "image and chart have one version", Severity.WARNING)
def skew(facts: Facts) -> Iterator[Finding]:
    """The image of the adapter has another version than the chart was made for. Settings that only
    one of them knows are rejected or have no effect.

    Remove `image.tag` from the values, so that the chart's own version applies, or upgrade the
    chart.
    """
    found = _release(facts)
    labels = found.workload.metadata.labels
    wanted = labels.get("app.kubernetes.io/version", "")
    for container in found.workload.spec.template.spec.containers:
        image, _, digest = container.image.partition("@")
        tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
        numbered = tag[:1].isdigit() or tag[:1] == "v"
        if wanted and numbered and not digest and tag.removeprefix("v") != wanted:
            yield Finding(
                f"deployment {found.workload.key}",
                f"runs image {tag}, and its chart is for {wanted}",
                "remove image.tag from the values, or upgrade the chart to the image's version",
                f"helm -n {found.workload.metadata.namespace} list",
            )


@check("GMA705", CheckSection.OURS, "an update or a lost node leaves a replica", Severity.WARNING)
def single(facts: Facts) -> Iterator[Finding]:
    """The adapter has one replica. Metrics are unavailable while it restarts or moves to another
    node.

    Set `replicas: 2`, the chart's default.
    """
    found = _release(facts)
    if found.workload.spec.replicas == 1:
        meta = found.workload.metadata
        yield Finding(
            f"deployment {found.workload.key}",
            "has one replica: metrics are unavailable while it restarts",
            "set replicas to 2 in the values of the chart",
            f"kubectl -n {meta.namespace} scale deployment {meta.name} --replicas=2",
        )


@check("GMA706", CheckSection.OURS, "GPU pods have a value")
def unmeasured(facts: Facts) -> Iterator[Finding]:
    """Pods that are ready and hold a GPU have no value of `gpu_utilization`.

    `gpu-metrics-adapter explain pod NAME` says why, for one pod. `docs/troubleshooting.md` explains
    the reasons.
    """
    _release(facts)
    measured = facts.measured.read()
    lacking: dict[str, list[str]] = {}
    for each in facts.gpu_pods:
        namespace, name = each.pod.ref
        ready = each.runs and each.pod.ready
        if ready and namespace in measured and name not in measured[namespace]:
            lacking.setdefault(namespace, []).append(name)
    for namespace, names in lacking.items():
        count = sum(p.pod.ref.namespace == namespace and p.runs for p in facts.gpu_pods)
        yield Finding(
            f"namespace {namespace}",
            f"{len(names)} of {count} GPU pods have no value, such as {names[0]}",
            "see why this pod has none",
            f"gpu-metrics-adapter explain pod {names[0]} -n {namespace}",
        )


def _pages(facts: Facts) -> list[SelfPage]:
    _release(facts)
    pages = list(facts.self_pages.read())
    if not pages:
        raise NotApplicableError("no replica of the adapter runs")
    return pages


def _metrics(facts: Facts, page: SelfPage) -> str:
    meta = _release(facts).workload.metadata
    return f"kubectl -n {meta.namespace} logs {page.pod} --tail=20"


@check("GMA711", CheckSection.OURS, "replicas agree", Severity.WARNING)
def disagree(facts: Facts) -> Iterator[Finding]:
    """The replicas of the adapter see different numbers of pods, exporters or devices. An HPA gets
    another value from each, depending on which replica answers. One of them does not reach some
    exporters, or its watch is behind.

    See the log of the replica with the smaller number.
    """
    pages = _pages(facts)
    for name, words in _COUNTS.items():
        values = {page.pod: value for page in pages if (value := page.sum(name)) is not None}
        low = min(values, key=lambda pod: values[pod], default="")
        high = max(values, key=lambda pod: values[pod], default="")
        if values and values[low] < values[high] * (1 - _APART):
            yield Finding(
                f"pod {low}",
                f"sees {values[low]:.0f} {words}, and {high} sees {values[high]:.0f}",
                "see the log of this replica",
                f"kubectl -n {_release(facts).workload.metadata.namespace} logs {low} --tail=20",
            )
            return


@check("GMA712", CheckSection.OURS, "memory is well below its limit", Severity.WARNING)
def memory(facts: Facts) -> Iterator[Finding]:
    """A replica uses more than 85 % of its memory limit. The kernel kills it at the limit.

    Raise `resources.limits.memory`. `docs/limits.md` lists what bounds the memory.
    """
    found = _release(facts)
    limits = [
        quantity.parse(container.resources.limits["memory"])
        for container in found.workload.spec.template.spec.containers
        if "memory" in container.resources.limits
    ]
    if not limits:
        raise NotApplicableError("the adapter has no memory limit")
    for page in _pages(facts):
        used = page.sum("process_resident_memory_bytes")
        if used is not None and used > _MEMORY * float(limits[0]):
            mib = 1 << 20
            meta = found.workload.metadata
            yield Finding(
                f"pod {page.pod}",
                f"uses {used / mib:.0f} MiB of {float(limits[0]) / mib:.0f} MiB",
                "raise resources.limits.memory in the values of the chart",
                f"kubectl -n {meta.namespace} top pod {page.pod}",
            )


@check("GMA713", CheckSection.OURS, "the serving certificate is valid for 14 more days")
def certificate(facts: Facts) -> Iterator[Finding]:
    """The serving certificate of the adapter ends soon, or has ended. The API server then rejects
    the adapter. The chart's CronJob renews its own certificate long before; cert-manager renews
    its own.

    Run the CronJob now, and see the log of its last Job.
    """
    meta = _release(facts).workload.metadata
    for page in _pages(facts):
        ends = page.sum("gma_serving_certificate_expiry_timestamp_seconds")
        if ends is not None and ends - facts.now < _WEEKS:
            days = (ends - facts.now) / 86400
            said = f"ends in {days:.1f} days" if days > 0 else f"ended {-days:.1f} days ago"
            yield Finding(
                f"pod {page.pod}",
                f"its serving certificate {said}",
                "renew it: run the certificates CronJob of the chart",
                f"kubectl -n {meta.namespace} create job renew-now"
                f" --from=cronjob/{meta.name[:39]}-certificates",
                Severity.WARNING if days > 0 else Severity.ERROR,
            )
            return


@check("GMA714", CheckSection.OURS, "few samples are rejected", Severity.WARNING)
def rejects(facts: Facts) -> Iterator[Finding]:
    """For one reason, the adapter has left out more than one sample or value for every 20 devices
    and scrapes since its start. Some are normal while pods come and go.

    `docs/troubleshooting.md` explains each reason.
    """
    for page in _pages(facts):
        series, scrapes = page.sum("gma_snapshot_series"), page.sum("gma_scrapes_total")
        targets = page.sum("gma_scrape_targets")
        found = page.by_label("gma_rejects_total", "reason")
        if not (series and scrapes and targets and found):
            continue
        expected = series * scrapes / targets
        reason, count = max(found.items(), key=lambda row: row[1])
        if count > _SHARE * expected and count > 100:
            yield Finding(
                f"pod {page.pod}",
                f"has left out {count:.0f} samples or values, most of them by {reason}",
                "see this reason in docs/troubleshooting.md",
                _metrics(facts, page),
            )
            return
