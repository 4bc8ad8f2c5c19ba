"""One metric of an HPA: the value of each pod, and the controller's arithmetic in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from adapter import figures
from adapter.figures import count
from adapter.hpa import (
    MetricKind,
    MetricSpec,
    PodState,
    Proposal,
    ResourceUsage,
    Rule,
    TargetKind,
    Values,
    Working,
)
from adapter.hpa.conditions import name_of
from adapter.pipeline.attribution.serieslabels import parse_selector
from adapter.pipeline.catalog.promise import (
    SLO_RATIO,
    PromiseError,
    describe_promise,
    promise_in,
)
from adapter.pipeline.catalog.targetfit import aggregate_of
from adapter.tools.explain import words
from adapter.tools.explain.hpafacts import HpaFacts, of_pods, pod_state
from adapter.tools.explain.hpaparts import MetricLines, PodLine
from adapter.tools.explain.metricvalues import ReadValues

_LISTED: Final = 10
"""Pods with a value that are listed; those without one always are, up to 50."""
_PROBLEMS: Final = 50
_GROUP: Final = "a pod of its group has no value, or does not exist: see kubectl get gpupods"


def explain_metric(
    metric: MetricSpec, answer: ReadValues, proposal: Proposal | None, facts: HpaFacts
) -> MetricLines:
    """Return the lines of one metric; ``proposal`` is None if the controller did not ask."""
    write = _writer(metric, facts)
    # Without an answer nothing is known of any pod, nor if the controller did not ask.
    shown = of_pods(metric.kind) and answer.values is not None
    pods = _pods(metric, answer, proposal, facts, write) if shown else []
    counted = [pod for pod in pods if pod.state == "counted"]
    left_out = [pod for pod in pods if pod.state != "counted"]
    working = proposal.working if proposal is not None else None
    return MetricLines(
        name=name_of(metric) if metric.kind is not MetricKind.EXTERNAL else _external(metric),
        target=_target(metric, write),
        value=_value(metric, proposal, write),
        asks=proposal.replicas if proposal is not None else None,
        rule=working.rule.value if working is not None else "",
        arithmetic=_arithmetic(metric, proposal, facts, write),
        error=_error(answer, proposal),
        pods=[*counted[:_LISTED], *left_out[:_PROBLEMS]],
        more=max(0, len(counted) - _LISTED),
        more_left_out=max(0, len(left_out) - _PROBLEMS),
    )


Write = Callable[[int], str]
"""Writes thousandths of the metric's unit."""


def _writer(metric: MetricSpec, facts: HpaFacts) -> Write:
    if metric.target.kind is TargetKind.UTILIZATION:
        return lambda value: f"{figures.number(value / 1000)} %"
    unit = "bytes" if metric.name == "memory" and metric.kind.of_resources else ""
    for pod in facts.gpu.pods.values():
        unit = unit or str((pod.value(metric.name) or {}).get("unit") or "")
    return lambda value: words.milli(value, unit)


def _external(metric: MetricSpec) -> str:
    return f"external metric {metric.name}"


def _target(metric: MetricSpec, write: Write) -> str:
    text = f"target {write(metric.target.milli)}"
    if metric.target.kind is TargetKind.UTILIZATION:
        return f"{text} of the requests"
    if metric.target.kind is TargetKind.VALUE:
        return text
    return f"{text} a pod"


def _value(metric: MetricSpec, proposal: Proposal | None, write: Write) -> str:
    if proposal is None or proposal.usage is None or proposal.working is None:
        return ""
    working = proposal.working
    if working.values is None:
        return f"value {write(working.total)}"
    mean = "" if metric.target.kind is TargetKind.UTILIZATION else "mean "
    return f"{mean}{write(proposal.usage)} of {count(len(working.values), 'pod')}"


def _error(answer: ReadValues, proposal: Proposal | None) -> str:
    if proposal is not None and proposal.error:
        return words.one_line(proposal.error)
    if answer.values is None and answer.problem is not None:
        return f"not readable: {answer.problem.brief}"
    return ""


def milli_of(values: Values | None) -> Mapping[str, int]:
    """Return the value of each pod; empty for values that are not of pods."""
    if isinstance(values, ResourceUsage):
        return {name: sample.milli for name, sample in values.samples.items()}
    if isinstance(values, Mapping):
        return values
    return {}


def _pods(
    metric: MetricSpec,
    answer: ReadValues,
    proposal: Proposal | None,
    facts: HpaFacts,
    write: Write,
) -> list[PodLine]:
    values = milli_of(answer.values)
    working = proposal.working if proposal is not None else None
    states = {state.name: state for state in map(pod_state, facts.pods)}
    absolute = write
    if metric.kind.of_resources:
        unit = "bytes" if metric.name == "memory" else ""
        absolute = partial(words.milli, unit=unit)
    lines = [
        _pod(metric, answer, states[name], _state(states[name], values, working), facts, absolute)
        for name in sorted(states)
    ]
    strangers = sorted(values.keys() - states.keys())
    note = "not a pod of the target; the controller counts it"
    lines += [PodLine(name, "other", absolute(values[name]), note=note) for name in strangers]
    return lines


def _state(pod: PodState, values: Mapping[str, int], working: Working | None) -> str:
    if pod.deleting or pod.phase == "Failed":
        return "ignored"
    if pod.phase == "Pending" or (working is not None and pod.name in working.unready):
        return "unready"
    return "counted" if pod.name in values else "missing"


def _pod(
    metric: MetricSpec,
    answer: ReadValues,
    pod: PodState,
    state: str,
    facts: HpaFacts,
    write: Write,
) -> PodLine:
    values, gpu = milli_of(answer.values), facts.gpu.pods.get(pod.name)
    about = gpu if metric.kind is MetricKind.PODS else None
    how: tuple[str, ...] = ()
    node = gpu.node if gpu is not None else ""
    form = _group_form(metric)
    if form:
        # What is known of the pod's own devices does not explain the value of its group.
        gpu = about = None
        node, how = "", (f"the {form} over its group of pods",)
    elif pod.name in values:
        if gpu is not None and (how := tuple(gpu.how(metric.name, facts.now, _promise(metric)))):
            node = ""  # the devices name it
        how = how or _describe_sample(answer, pod.name, facts.now)
    return PodLine(
        pod.name,
        state,
        value=write(values[pod.name]) if pod.name in values else "",
        node=node,
        how=how,
        # metrics.k8s.io has no part in the reasons of GPUs.
        why=about.why(metric.name) if about is not None and state == "missing" else None,
        note=_GROUP if form and state == "missing" else _note(metric, pod, state, facts),
    )


def _group_form(metric: MetricSpec) -> str:
    """Return how a Pods metric combines each pod's group; empty for the pod's own value."""
    return aggregate_of(metric.selector) if metric.kind is MetricKind.PODS else ""


def _promise(metric: MetricSpec) -> str:
    """Return the promise that the selector of a metric states, in words; empty without one."""
    selector = parse_selector(metric.selector) if metric.name == SLO_RATIO else None
    try:
        return describe_promise(promise_in(selector.requirements)) if selector else ""
    except PromiseError:
        return ""


def _describe_sample(answer: ReadValues, name: str, now: float) -> tuple[str, ...]:
    sampled = answer.sampled.get(name)
    if sampled is None:
        return ()
    old = "of unknown age"
    if sampled.time is not None:
        old = f"{figures.age(now - sampled.time)} old"
    return (old, *((f"mean of {sampled.window} s",) if sampled.window else ()))


def _note(metric: MetricSpec, pod: PodState, state: str, facts: HpaFacts) -> str:
    if state == "ignored":
        return "being deleted: it does not count" if pod.deleting else "failed: it does not count"
    if state == "unready" and pod.phase == "Pending":
        return "pending: it counts as 0 on the way up, and not at all on the way down"
    if state == "unready":
        return (
            "starts, or was never ready: its CPU counts as 0 on the way up, and not on the way down"
        )
    if state == "missing" and pod.name not in facts.gpu.pods and metric.kind is MetricKind.PODS:
        return "no value" if not facts.gpu.problem else "no value; the reason is not readable"
    gpu = facts.gpu.pods.get(pod.name)
    if state == "missing" and gpu is not None and gpu.value(metric.name) is not None:
        return "the adapter has a value, which the metrics API did not return"
    return "no value from metrics.k8s.io" if state == "missing" and metric.kind.of_resources else ""


def _arithmetic(
    metric: MetricSpec, proposal: Proposal | None, facts: HpaFacts, write: Write
) -> str:
    if proposal is None or proposal.working is None or proposal.replicas is None:
        return ""
    working, target = proposal.working, write(metric.target.milli)
    if working.values is None:
        return _of_value(working, proposal.replicas, target, write)
    if proposal.usage is None:
        return ""
    ratio = figures.number(working.ratio)
    first = f"{write(proposal.usage)} / {target} = {ratio}"
    if working.cautious is None:
        return f"{first}; {_conclusion(working, working.ratio, proposal.replicas)}"
    filled = _describe_filled_pods(metric, working, write)
    second = f"{first}; with {filled}, the ratio is {figures.number(working.cautious)}"
    return f"{second}; {_conclusion(working, working.cautious, proposal.replicas)}"


def _conclusion(working: Working, ratio: float, replicas: int) -> str:
    if working.rule is Rule.TOLERANCE:
        return "within the tolerance of 1, so nothing changes"
    if working.rule is Rule.TURNED:
        return "with that the direction would turn, so nothing changes"
    pods = count(working.count, "pod")
    return f"{pods} × {figures.number(ratio)}, rounded up, is {replicas}"


def _describe_filled_pods(metric: MetricSpec, working: Working, write: Write) -> str:
    names = [name for name in working.filled if name in working.missing]
    unready = [name for name in working.filled if name in working.unready]
    if working.ratio > 1.0:
        parts = [_pod_count(names, "without a value"), _pod_count(unready, "not ready")]
        return f"{' and '.join(part for part in parts if part)} as 0 on the way up"
    if not working.filled:
        return f"{_pod_count(sorted(working.missing), 'without a value')} left out, at the target"
    assumed = write(metric.target.milli)
    if metric.target.kind is TargetKind.UTILIZATION:
        assumed = "the whole request, or the target if that is more"
    return f"{_pod_count(names, 'without a value')} as {assumed} on the way down"


def _pod_count(names: list[str], what: str) -> str:
    return f"{count(len(names), 'pod')} {what}" if names else ""


def _of_value(working: Working, replicas: int, target: str, write: Write) -> str:
    total, ratio = write(working.total), figures.number(working.ratio)
    if working.rule is Rule.READY:
        pods = count(working.count, "ready pod")
        return f"{total} / {target} = {ratio}; {pods} × {ratio}, rounded up, is {replicas}"
    if working.rule is Rule.FROM_ZERO:
        return f"{total} / {target}, rounded up, is {replicas}"
    if working.rule is Rule.SHARE:
        return f"{total} / {target} a pod, rounded up, is {replicas}"
    return f"value / target is {ratio}: within the tolerance of 1, so nothing changes"
