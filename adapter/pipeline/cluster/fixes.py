"""Fixes that last: a change as the command, or in the words, of what manages the object.

:func:`make_lasting` is the one place that decides how an object is changed. ``kubectl`` changes the
object itself only if nothing writes it again (:mod:`adapter.pipeline.cluster.managers`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from adapter.pipeline.cluster import charts
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange, edit, merge, set_fields
from adapter.pipeline.cluster.hpawriters import REWRITTEN, fields_in, place_in
from adapter.pipeline.cluster.managers import Manager, Way
from adapter.pipeline.cluster.operands import SUBSCRIPTION, VALUES, Operand, operand_of


class Fix(NamedTuple):
    """How a change is made so that it lasts."""

    text: str
    """What to do, in words."""
    command: str = ""
    """A command that does it; empty if none can."""
    by: str = ""
    """What manages the object, in words; empty if nothing does."""

    @property
    def line(self) -> str:
        """The command, or else the words."""
        return self.command or self.text

    def advice(self, words: str) -> str:
        """Return what to do in the words of a finding, with what manages the object."""
        if not self.by:
            return words
        return f"{words} ({self.by} manages it)" if self.command else f"{words}: {self.text}"


def make_lasting(of: ChangedObject, change: ObjectChange) -> Fix:
    """Return how a change of an object is made so that nothing reverts it."""
    if of.manager is None:
        return Fix(f"{change.words} in {of.words}", change.command)
    return _by_manager(of, of.manager, change)._replace(by=of.manager.source)


def _by_manager(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    if manager.way is Way.NOWHERE:
        return Fix(
            f"nothing changes {of.words} for good, because {manager.tool} writes it again: where "
            f"it allows, {change.words} in its own settings, or run an own one beside it"
        )
    if manager.way is Way.UNKNOWN:
        return Fix(
            f"{change.words} in {of.words} of namespace {of.namespace}, where it is managed: its "
            f"ownerReferences, labels and annotations say by what (`{manager.tool}`, which you may "
            "not read)"
        )
    if manager.way is Way.GIT:
        values = _value_words(manager, of, change)
        return Fix(f"change it in git ({manager.source}): {values or change.words} in {of.words}")
    if manager.way is Way.VALUES:
        return _in_values(of, manager, change)
    return _in_owner(of, manager, change)


# In the values of a Helm release.


def _in_values(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    chart = charts.CHARTS.get(manager.chart)
    sets = charts.arguments(manager.chart, change.env, change.fields, change.tolerations, of.env)
    if change.values:
        sets = [f"--set {key}={shlex.quote(text)}" for key, text in change.values.items()]
    if chart is not None and chart.source and sets:
        parts = [shlex.quote(manager.name), *chart.source]
        version = ["--version", shlex.quote(manager.version)] if manager.version else []
        parts += version if "--repo" in chart.source else []
        parts += ["-n", shlex.quote(manager.namespace), "--reuse-values", *sets]
        return Fix(
            f"{change.words} in {of.words} by the values of {manager.source}",
            f"helm upgrade {' '.join(parts)}",
        )
    note = f" (chart {manager.chart})" if manager.chart else ""
    values = _value_words(manager, of, change) or change.words
    return Fix(
        f"change the values of {manager.source}{note} and run helm upgrade: {values} in {of.words}"
    )


def _value_words(manager: Manager, of: ChangedObject, change: ObjectChange) -> str:
    """Return the change in the terms of a known chart; empty if there are none."""
    words = charts.words(manager.chart, change.env, change.fields)
    return f"{words} in the values, which will {change.words}" if words else ""


# In the object that owns it.


def _in_owner(of: ChangedObject, manager: Manager, change: ObjectChange) -> Fix:
    group = manager.api_version.rpartition("/")[0]
    owner = ChangedObject(manager.kind, manager.namespace, manager.name, of.above, group=group)
    if of.kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        return _in_writer(of, owner, change)
    if manager.kind == "ClusterServiceVersion":
        return _in_subscription(of, owner, change)
    operand = operand_of(manager.kind, manager.name, of.name)
    if not manager.name:
        part = operand.part if operand is not None else ""
        if operand is not None and change.env is not None:
            part = operand.env
        lookup = f"`kubectl get {owner.resource}` names it"
        return Fix(f"{change.words} in {part or 'spec'} of the {manager.kind} ({lookup})")
    if operand is not None:
        return _in_operand(of, owner, operand, change)
    words = f"{change.words} for {of.words}, which it writes,"
    return make_lasting(owner, edit(owner, words))


def _in_subscription(of: ChangedObject, owner: ChangedObject, change: ObjectChange) -> Fix:
    """A Subscription has what OLM adds to an operator's Deployments; the rest is its author's."""
    path = SUBSCRIPTION.tolerations if change.tolerations else ""
    path = SUBSCRIPTION.env if change.env is not None else path
    path = SUBSCRIPTION.resources if change.of_resources else path
    if not path:
        lost = "an upgrade of the operator writes it again"
        return Fix(
            f"{change.words} for {of.words} in {owner.words}: {lost}", edit(owner, "").command
        )
    lookup = f"`kubectl -n {owner.namespace} get subscriptions.operators.coreos.com` names it"
    return Fix(
        f"{change.words} in {path} of the Subscription that installs {owner.name} ({lookup}); it "
        "applies to every Deployment of the operator"
    )


def _in_operand(
    of: ChangedObject, owner: ChangedObject, operand: Operand, change: ObjectChange
) -> Fix:
    """A list of an operator's object is written whole, so its present rows have to be known."""
    if change.env is not None and operand.env:
        path, (name, value) = operand.env, change.env
        row = {"name": name, "value": value}
        others = [variable for variable in _rows(of.owner, path) if variable.get("name") != name]
        rows = others if value is None else [*others, row]
    elif change.tolerations and operand.tolerations:
        path = operand.tolerations
        rows = [*_rows(of.owner, path), *change.tolerations]
    elif change.env is not None and operand.part:
        off = f", and turn off {operand.switch}" if operand.switch else ""
        if operand.part == "spec":  # the whole object describes this DaemonSet
            off = f", and delete {owner.words}"
        return Fix(
            f"{owner.words} has no field for variables of {of.words}, and its operator writes it "
            f"again: to {change.words}, run a DaemonSet of your own in its place{off}"
        )
    else:
        place = operand.resources if change.of_resources else ""
        return make_lasting(
            owner, edit(owner, f"{change.words} in {place or operand.part or 'spec'}")
        )
    words = f"{change.words} in {path}"
    if of.owner is None:
        return make_lasting(owner, edit(owner, words))
    if owner.manager is not None and owner.manager.way is Way.VALUES:
        # The chart writes the list only if the values have one; an object that is patched stays so
        # until then.
        fix = make_lasting(
            owner._replace(manager=None), ObjectChange(words, merge(owner, {path: rows}))
        )
        key = f"{VALUES.get(owner.kind, '')}{path.removeprefix('spec.')}"
        keep = f"keep {key} in the values of {owner.manager.source} too"
        return Fix(f"{fix.text}; {keep}", f"{fix.command} # {keep}")
    return make_lasting(owner, ObjectChange(words, merge(owner, {path: rows})))


def _rows(manifest: Mapping[str, Any] | None, path: str) -> list[Mapping[str, Any]]:
    part: Any = manifest or {}
    for key in path.split("."):
        part = (part.get(key) if isinstance(part, Mapping) else None) or {}
    return [row for row in part if isinstance(row, Mapping)] if isinstance(part, list) else []


def _in_writer(of: ChangedObject, owner: ChangedObject, change: ObjectChange) -> Fix:
    """The object from which a controller writes an HPA, or a ScaledObject."""
    fields = fields_in(of, owner, change.fields or {})
    if fields:
        return make_lasting(owner, set_fields(owner, fields))
    place = place_in(owner)
    if owner.kind in REWRITTEN:
        return Fix(f"{change.words} for {of.words} by {place}")
    by = f"by {place}" if place else f"for {of.words}, which it writes,"
    return make_lasting(owner, edit(owner, f"{change.words} {by}"))
