"""Checks of the adapter's own installation: settings, versions, replicas, values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapter.pipeline.attribution.reasons import DOCTOR, REASONS, changed_object, lasting_fix
from adapter.pipeline.cluster.changes import scale
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.changedobjects import changed_workload, own_values, workload
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.release import Release, helm_release
from adapter.tools.doctor.valuelesspods import WithoutValue


def require_release(facts: Facts) -> Release:
    """Return the installation; raises NotApplicableError without one."""
    release = facts.release.read()
    if release is None:
        raise NotApplicableError("the adapter is not installed")
    return release


def _rollout(release: Release) -> str:
    meta = release.workload.metadata
    return f"kubectl -n {meta.namespace} describe deployment {meta.name}"


@check("GMA701", CheckSection.OURS, "the settings are valid")
def settings(facts: Facts) -> Iterator[Finding]:
    """The ConfigMap of the adapter has a key that does not exist, or a value that it rejects.
    Running pods keep the previous configuration; new pods do not start.

    Correct the key that the message names (`docs/settings.md`).
    """
    release = require_release(facts)
    meta = release.workload.metadata
    for problem in release.problems:
        yield Finding(
            f"configmap of {meta.namespace}/{meta.name}",
            problem,
            "correct this key under config in the values of the chart",
            f"kubectl -n {meta.namespace} get configmap {meta.name} -o yaml",
        )


@check("GMA702", CheckSection.OURS, "the adapter's pods are ready")
def not_ready(facts: Facts) -> Iterator[Finding]:
    """A replica is not ready until it has listed the pods and scraped every exporter once, or one
    age limit has passed. Without a ready replica, HPAs keep their replica counts.

    See the events and the log of the pod.
    """
    release = require_release(facts)
    facts.pods.read()
    wanted = release.workload.spec.replicas
    if wanted and not release.pods:
        text = f"wants {wanted} replicas and has no pod"
        name = f"deployment {release.workload.key}"
        yield Finding(name, text, "see why no pod is created", _rollout(release))
    for pod in release.pods:
        if pod.pod.ready or pod.pod.deleting:
            continue
        statuses = pod.status.container_statuses
        waiting = next((s.state.waiting.reason for s in statuses if s.state.waiting), "")
        reason = waiting or next(
            (c.message for c in pod.status.conditions if c.status == "False" and c.message), ""
        )
        namespace, name = pod.pod.ref
        yield Finding(
            pod.subject,
            f"is {pod.pod.phase or 'Pending'} and not ready{': ' if reason else ''}{reason}",
            "see its events and its log",
            f"kubectl -n {namespace} describe pod {name}",
        )


@check("GMA703", CheckSection.OURS, "the adapter's containers are not killed", Severity.WARNING)
def restarts(facts: Facts) -> Iterator[Finding]:
    """A container of the adapter was killed for its memory (OOMKilled), or has restarted five times
    or more.

    Raise `resources.limits.memory`, or see the log of the previous container.
    """
    for pod in require_release(facts).pods:
        for status in pod.status.container_statuses:
            ended = status.last_state.terminated
            if ended is not None and ended.reason == "OOMKilled":
                text = "was killed for its memory (OOMKilled): raise resources.limits.memory"
            elif status.restart_count >= 5:
                text = f"has restarted {status.restart_count} times"
            else:
                continue
            namespace, name = pod.pod.ref
            yield Finding(
                pod.subject,
                f"container {status.name} {text}",
                "see the log of the previous container, and its memory",
                f"kubectl -n {namespace} logs {name} --previous --tail=20",
            )


@check("GMA704", CheckSection.OURS, "image and chart have one version", Severity.WARNING)
def skew(facts: Facts) -> Iterator[Finding]:
    """The image has another version than the chart was made for. Settings that only one of them
    knows are rejected or have no effect.

    Remove `image.tag` from the values, or upgrade the chart.
    """
    release = require_release(facts)
    labels = release.workload.metadata.labels
    wanted = labels.get("app.kubernetes.io/version", "")
    for container in release.workload.spec.template.spec.containers:
        image, _, digest = container.image.partition("@")
        tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
        numbered = tag[:1].isdigit() or tag[:1] == "v"
        if wanted and numbered and not digest and tag.removeprefix("v") != wanted:
            yield Finding(
                f"deployment {release.workload.key}",
                f"runs image {tag}, and its chart is for {wanted}",
                "remove image.tag from the values, or upgrade the chart to the image's version",
                f"helm -n {helm_release(release.workload)[0]} list",
            )


@check("GMA705", CheckSection.OURS, "an update or a lost node leaves a replica", Severity.WARNING)
def single_replica(facts: Facts) -> Iterator[Finding]:
    """With one replica, metrics are unavailable while it restarts or moves to another node.

    Set `replicas: 2`, the chart's default.
    """
    release = require_release(facts)
    if release.workload.spec.replicas == 1:
        yield Finding(
            f"deployment {release.workload.key}",
            "has one replica: metrics are unavailable while it restarts",
            "set replicas to 2 in the values of the chart",
            own_values(
                release, {"replicas": "2"}, scale(changed_workload(release.workload), 2).command
            ),
        )


@check("GMA706", CheckSection.OURS, "GPU pods have a value", effect=FindingEffect.RESULT)
def unmeasured_pods(facts: Facts) -> Iterator[Finding]:
    """Pods that are ready and hold a GPU have no value. There is one finding for each reason;
    without the view API, one for each namespace.

    `gpu-metrics-adapter explain pod NAME` says why, for one pod (`docs/reasons.md`).
    """
    shown = facts.without_value
    if not shown.known:
        require_release(facts)
    measured = (facts.measured.value or {}) if shown.known else facts.measured.read()
    absences = {absence.key: absence for absence in shown.value or ()}
    reasons: dict[str, list[WithoutValue]] = {}
    unexplained: dict[str, list[str]] = {}
    for pod in facts.gpu_pods:
        namespace, name = pod.pod.ref
        if not (pod.runs and pod.pod.ready):
            continue
        if why := absences.get(pod.key):
            reasons.setdefault(why.reason, []).append(why)
        elif namespace in measured and name not in measured[namespace]:
            unexplained.setdefault(namespace, []).append(name)
    for pods in reasons.values():
        yield _for_a_reason(facts, pods)
    for namespace, names in unexplained.items():
        count = sum(p.pod.ref.namespace == namespace and p.runs for p in facts.gpu_pods)
        yield Finding(
            f"namespace {namespace}",
            f"{len(names)} of {count} GPU pods have no value, such as {names[0]}",
            "see why this pod has none",
            f"gpu-metrics-adapter explain pod {names[0]} -n {namespace}",
        )


def are_measured(facts: Facts, pods: Sequence[SeenPod]) -> bool:
    """Return whether each of these pods is known to have a value of `gpu_utilization`."""
    measured_names = (facts.measured.value or {}) if facts.measured.known else {}
    return all(pod.pod.ref.name in measured_names.get(pod.pod.ref.namespace, ()) for pod in pods)


def _for_a_reason(facts: Facts, pods: Sequence[WithoutValue]) -> Finding:
    """Return the finding for the pods without a value for one reason, with an example's fix."""
    first = pods[0]
    others = f", and {len(pods) - 1} more for this reason" if len(pods) > 1 else ""
    message = f"has no value{others}: {first.reason}: {first.message}"
    return Finding(f"pod {first.key}", message, *fix_of_reason(facts, first))


def fix_of_reason(facts: Facts, why: WithoutValue) -> tuple[str, str | Fix]:
    """Return what to do about a pod without a value, and the command."""
    namespace, _, name = why.key.partition("/")
    action: str | Fix = f"gpu-metrics-adapter explain pod {name} -n {namespace}"
    cause = REASONS.get(why.reason)
    hint = cause.command if cause and cause.command.startswith(DOCTOR) else why.hint
    advice = hint or "see its values"
    if hint.startswith("kubectl "):
        advice, action = "run this command for its exporter or pod", hint
        if why.then:
            advice += f"; if it shows no cause, run `{why.then}`"
    elif hint.startswith(DOCTOR):
        # `explain pod` would name this command again.
        checks = hint.partition("# ")[2].replace(", ", " or ") or "another check"
        advice = f"{checks} says why, and has the command"
        action = f"{DOCTOR} --explain {why.reason}"
    elif why.changes:
        advice, action = _fix_of_change(facts, why) or (advice, action)
    return advice, action


def _fix_of_change(facts: Facts, why: WithoutValue) -> tuple[str, Fix] | None:
    """Return the fix of a reason that changes an object, as it lasts; None for another reason."""
    of = changed_object(why.changes)
    fix = lasting_fix(why.reason, workload(facts, of.kind, of.namespace, of.name))
    return (REASONS[why.reason].fix, fix) if fix is not None else None
