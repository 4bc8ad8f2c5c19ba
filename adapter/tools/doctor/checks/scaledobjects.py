"""Checks of ScaledObjects of KEDA: their triggers for the adapter, and for a Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.answers.causes import CauseCode
from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.sleep import needs_pods
from adapter.answers.keda.trigger import compile_trigger
from adapter.answers.keda.triggerquery import has_value_without, without_constant
from adapter.answers.keda.trouble import ScaledFacts, address_causes, causes_of_scaled
from adapter.config.settings import Settings
from adapter.figures import join_names
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.pipeline.catalog.promqltext import words
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.objects import SeenEvent
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.hpacauses import asks_gpu
from adapter.tools.doctor.model import CheckSection, Finding, Severity, check
from adapter.tools.doctor.scaletargets import target_of


@check("GMA426", CheckSection.HPAS, "ScaledObjects and their triggers for the adapter are valid")
def wrong_trigger(facts: Facts) -> Iterator[Finding]:
    """A trigger for the adapter has an unknown key or metric, or an invalid number or selector. Or
    KEDA refuses `metricType`, or the API server a type (`target: 70` without quotes).

    Correct the field: see `docs/keda.md` and `docs/metrics.md`.
    """
    names = servedmetrics.metrics(facts.settings)
    installed = facts.release.known and facts.release.value is not None
    for scaled in facts.scaledobjects.read():
        yield from _refused_fields(scaled)
        for trigger in scaled.ours:
            metric = trigger.metadata.get("metric", "")
            if (
                metric
                and not installed
                and metric not in names
                and not nearest_metrics(metric, names).exist
            ):
                continue  # perhaps a metric of the settings, which were not read
            try:
                compile_trigger(trigger.metadata, names)
            except BadTrigger as error:
                yield Finding(
                    scaled.subject,
                    f"{trigger.path}.metadata: {error}",
                    "correct the metadata of the trigger",
                    scaled.edit,
                )


def _refused_fields(scaled: SeenScaledObject) -> Iterator[Finding]:
    for fault in scaled.faults:
        text = f"{fault.path} {fault.why}: the API server refuses the ScaledObject"
        yield Finding(scaled.subject, text, fault.fix, scaled.edit)
    for trigger in scaled.triggers:
        if trigger.refuses_metric_type:
            path = f"{trigger.path}.metricType"
            yield Finding(
                scaled.subject,
                f"{path} is {trigger.metric_type}, which KEDA refuses for external metrics",
                f"set {path} to AverageValue for a sum over the pods, or to Value for a mean",
                scaled.edit,
            )


@check("GMA427", CheckSection.HPAS, "ScaledObjects are ready")
def not_ready(facts: Facts) -> Iterator[Finding]:
    """A ScaledObject about GPUs is not ready, so it has made no HPA, or uses the replicas of
    `fallback`, because a trigger fails. Or KEDA's operator has not looked at it. Or its HPA has the
    default metric, 80 % of CPU, because the scaler did not answer when KEDA made it. Or an
    annotation pauses it.

    Correct what the finding says. The events of the ScaledObject, and the log of keda-operator,
    have more.
    """
    facts.require_cluster()
    for around in _scaledobject_facts(facts):
        for cause in causes_of_scaled(around):
            if cause.code not in _OTHER_CHECKS:
                yield Finding(around.scaled.subject, cause.text, cause.fix, cause.command)


_OTHER_CHECKS: Final = (CauseCode.SCALER_ADDRESS, CauseCode.NEVER_WAKES)
"""Causes of GMA428 and GMA408."""


def _scaledobject_facts(facts: Facts) -> Iterator[ScaledFacts]:
    """Yield the ScaledObjects of the adapter's concern, with what is around them."""
    hpas = {(row.namespace, row.name): row.manifest for row in facts.hpas.read()}
    events: dict[tuple[str, str], list[SeenEvent]] = {}
    for event in facts.events.value or () if facts.events.known else ():
        if event.involved_object.kind == "ScaledObject":
            about = event.involved_object
            events.setdefault((about.namespace, about.name), []).append(event)
    for scaled in facts.scaledobjects.read():
        target = target_of(facts, scaled)
        if concerns_scaledobject(facts, scaled, target):
            yield ScaledFacts(
                facts.now,
                scaled,
                hpas.get((scaled.namespace, scaled.hpa)),
                target is not None if scaled.kind in _READ else None,
                events=events.get((scaled.namespace, scaled.name), ()),
                services=facts.scalers.value or {} if facts.scalers.known else {},
                port=facts.settings.keda.port,
            )


_READ: Final = ("Deployment", "StatefulSet")
"""Kinds of targets of which all were read."""


def concerns_scaledobject(
    facts: Facts, scaled: SeenScaledObject, target: SeenWorkload | None
) -> bool:
    """Return whether a ScaledObject reads one of the adapter's metrics, or scales GPU pods."""
    names = servedmetrics.metrics(facts.settings).keys()
    if scaled.ours or any(words(row.query) & names for row in scaled.triggers):
        return True
    if any(row.metadata.get("metric") in names for row in scaled.triggers):
        return True  # the address may be the mistake
    return target is not None and asks_gpu(target, facts.gpu_resources)


@check("GMA428", CheckSection.HPAS, "triggers name addresses that answer")
def wrong_address(facts: Facts) -> Iterator[Finding]:
    """The `scalerAddress` of a trigger is not `HOST:PORT` with the port for KEDA (6000 on the
    chart's Service; 443 is the metrics API), or has a scheme; or `enableTLS` does not match
    `keda.tls`. Or this address, or the `serverAddress` of a Prometheus, is KEDA's own pod
    (`localhost`), or names no Service, no port of it, or a Service without ready pods.

    Correct the trigger: `docs/keda.md`.
    """
    settings = _settings(facts)
    for around in _scaledobject_facts(facts):
        for cause in address_causes(around):
            yield Finding(around.scaled.subject, cause.text, cause.fix, cause.command)
        for trigger in around.scaled.ours:
            if settings is not None and settings.keda.tls != _encrypts(trigger):
                wanted = str(settings.keda.tls).lower()
                path = f"{trigger.path}.metadata.enableTLS"
                what = f"{path} is not {wanted}, and keda.tls of the adapter is {wanted}"
                yield _wrong_field(around.scaled, path, what, wanted)


def _settings(facts: Facts) -> Settings | None:
    """Return the settings of the installation; None without one."""
    release = facts.release.value if facts.release.known else None
    return release.settings if release is not None else None


def _encrypts(trigger: SeenTrigger) -> bool:
    keys = ("enableTLS", "tlsCertFile")
    return any(trigger.metadata.get(key, "false").lower() != "false" for key in keys)


def _wrong_field(scaled: SeenScaledObject, at: str, message: str, right: str) -> Finding:
    return Finding(scaled.subject, message, f'set {at} to "{right}"', scaled.patch(at, right))


@check(
    "GMA429",
    CheckSection.HPAS,
    "queries of KEDA for GPU metrics do not take no answer for 0",
    Severity.WARNING,
)
def nothing_counts_as_zero(facts: Facts) -> Iterator[Finding]:
    """A trigger of type `prometheus` asks for a series of exporters or servers, and an empty answer
    counts as 0, KEDA's default, or `or vector(0)` makes it 0. When the exporter fails, the workload
    scales in under full load.

    Remove `or vector(0)` and set `ignoreNullValues: "false"`, so that `fallback` applies, or use a
    trigger of type `external`.
    """
    names = frozenset(servedmetrics.metrics(facts.settings))
    for scaled in facts.scaledobjects.read():
        for trigger in scaled.triggers:
            if series := sorted(words(trigger.query) & names):
                yield from _of_empty_answers(scaled, trigger, join_names(series, 2))


def _of_empty_answers(
    scaled: SeenScaledObject, trigger: SeenTrigger, series: str
) -> Iterator[Finding]:
    """Yield that no answer about series counts as 0, for KEDA or by the query itself."""
    path, advice = f"{trigger.path}.metadata", []
    fields: dict[str, object] = {}
    action: str | Fix | None = None
    message = f"{trigger.path}: no answer about {series} counts as 0"
    if has_value_without(trigger.query):
        message = f"{trigger.path}: without an answer about {series}, its query has a value"
        parts = without_constant(trigger.query)
        if parts is None:
            advice.append(f"correct {path}.query: it must be empty while its series do not exist")
            action = scaled.edit
        else:
            fields[f"{path}.query"], constant = parts
            message += f": that of `{constant}`"
            advice.append(f"remove `{constant}` from {path}.query")
    if trigger.metadata.get("ignoreNullValues", "true").lower() != "false":
        fields[f"{path}.ignoreNullValues"] = "false"
        advice.append(f'set {path}.ignoreNullValues to "false"')
    if not advice:
        return
    words_of_fix = " and ".join(advice)
    if scaled.low == 0 and needs_pods(scaled, trigger):
        words_of_fix += (
            "; without pods its answer is empty too, and fallback then scales out: a trigger of "
            "type external distinguishes the two"
        )
    action = scaled.patch_fields(fields) if action is None else action
    yield Finding(scaled.subject, message, words_of_fix, action)
