"""Checks of ScaledObjects of KEDA: their triggers for the adapter, and for a Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from adapter.answers.causes import CauseCode
from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.trigger import compile_trigger
from adapter.answers.keda.trouble import ScaledFacts, address_causes, causes_of_scaled
from adapter.config.settings import Settings
from adapter.figures import join_names
from adapter.pipeline.catalog.nearest import nearest_metric
from adapter.pipeline.catalog.promqltext import words
from adapter.pipeline.cluster.objects import SeenEvent
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.hpacauses import asks_gpu
from adapter.tools.doctor.model import CheckSection, Finding, Severity, check


@check("GMA426", CheckSection.HPAS, "triggers of ScaledObjects for the adapter are valid")
def wrong_trigger(facts: Facts) -> Iterator[Finding]:
    """A trigger whose `scalerAddress` names the adapter has an unknown key, a metric that does not
    exist, or an invalid number or selector. The scaler rejects it.

    Correct the metadata: `docs/keda.md` lists the keys, and `docs/metrics.md` the metrics.
    """
    names = servedmetrics.metrics(facts.settings)
    installed = facts.release.known and facts.release.value is not None
    for scaled in facts.scaledobjects.read():
        for trigger in scaled.ours:
            metric = trigger.metadata.get("metric", "")
            if (
                metric
                and not installed
                and metric not in names
                and not nearest_metric(metric, names)
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


@check("GMA427", CheckSection.HPAS, "ScaledObjects are ready")
def not_ready(facts: Facts) -> Iterator[Finding]:
    """A ScaledObject about GPUs is not ready, so it has made no HPA, or uses the replicas of
    `fallback`, because a trigger fails. Or KEDA's operator has not looked at it. Or its HPA has the
    default metric, 80 % of CPU, because the scaler did not answer when KEDA made it. Or it may
    scale to 0, and nothing wakes it. Or an annotation pauses it.

    Correct what the finding says. The events of the ScaledObject, and the log of keda-operator,
    have more.
    """
    facts.require_cluster()
    for around in _scaledobject_facts(facts):
        for cause in causes_of_scaled(around):
            if cause.code is not CauseCode.SCALER_ADDRESS:
                yield Finding(around.scaled.subject, cause.text, cause.fix, cause.command)


def _scaledobject_facts(facts: Facts) -> Iterator[ScaledFacts]:
    """Yield the ScaledObjects of the adapter's concern, with what is around them."""
    names = frozenset(servedmetrics.metrics(facts.settings))
    hpas = {(row.namespace, row.name): row.manifest for row in facts.hpas.read()}
    events: dict[tuple[str, str], list[SeenEvent]] = {}
    for event in facts.events.value or () if facts.events.known else ():
        if event.involved_object.kind == "ScaledObject":
            about = event.involved_object
            events.setdefault((about.namespace, about.name), []).append(event)
    workloads = {
        (row.metadata.namespace, row.kind, row.metadata.name): row for row in facts.workloads.read()
    }
    for scaled in facts.scaledobjects.read():
        target = workloads.get((scaled.namespace, scaled.kind, scaled.target))
        if _concerns(facts, scaled, target, names):
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


def _concerns(
    facts: Facts, scaled: SeenScaledObject, target: SeenWorkload | None, names: Set[str]
) -> bool:
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
    counts as 0, KEDA's default. When the exporter fails, the workload scales in under full load.

    Set `ignoreNullValues: "false"`, so that `fallback` applies, or use a trigger of type
    `external`.
    """
    names = frozenset(servedmetrics.metrics(facts.settings))
    for scaled in facts.scaledobjects.read():
        for trigger in scaled.triggers:
            series = sorted(words(trigger.query) & names)
            if series and trigger.metadata.get("ignoreNullValues", "true").lower() != "false":
                path = f"{trigger.path}.metadata.ignoreNullValues"
                message = f"{trigger.path}: no answer about {join_names(series, 2)} counts as 0"
                yield _wrong_field(scaled, path, message, "false")
