"""Checks of ScaledObjects of KEDA whose triggers ask the adapter."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.catalog.nearest import nearest_metric
from adapter.doctor import servedmetrics
from adapter.doctor.facts import Facts
from adapter.doctor.model import CheckSection, Finding, check
from adapter.keda.errors import BadTrigger
from adapter.keda.trigger import compile_trigger


@check("GMA426", CheckSection.HPAS, "triggers of ScaledObjects for the adapter are valid")
def wrong_trigger(facts: Facts) -> Iterator[Finding]:
    """The metadata of a trigger whose `scalerAddress` names the adapter has a mistake: an unknown
    key, a metric that does not exist, or an invalid number or selector. The scaler rejects it, and
    the workload does not scale by it.

    Correct the metadata: `docs/keda.md` lists the keys, and `docs/metrics.md` the metrics.
    """
    names = servedmetrics.metrics(facts.settings)
    installed = facts.release.known and facts.release.value is not None
    for scaled in facts.scaledobjects.read():
        where = f" in {scaled.origin}" if scaled.origin else ""
        for number, metadata in enumerate(scaled.triggers):
            metric = metadata.get("metric", "")
            if (
                metric
                and not installed
                and metric not in names
                and not nearest_metric(metric, names)
            ):
                continue  # perhaps a metric of the settings, which were not read
            try:
                compile_trigger(metadata, names)
            except BadTrigger as error:
                yield Finding(
                    f"scaledobject {scaled.namespace}/{scaled.name}{where}",
                    f"the trigger for the adapter, number {number + 1}: {error}",
                    "correct the metadata of the trigger",
                    scaled.edit("correct the metadata of the trigger"),
                )
