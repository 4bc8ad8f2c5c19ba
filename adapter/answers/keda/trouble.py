"""Why a ScaledObject has no HPA, or its triggers give no value: causes, each with its fix.

KEDA writes ``Ready: False`` with ``ScaledObjectCheckFailed`` and no HPA if a ScaledObject is not
valid (``controllers/keda/scaledobject_controller.go``), deletes the HPA of a paused one, and writes
what a scaler answers as events ``KEDAScalerFailed``. A scaler that does not answer while KEDA makes
the HPA leaves an HPA with the default metric, 80 % of CPU (kedacore/keda issues 5787 and 7729).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapter.answers.causes import Cause, CauseCode
from adapter.answers.causes.signs import sign_of
from adapter.answers.causes.target import short
from adapter.answers.judgement.judge import CREATION
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.scalersigns import CHECKS, NO_TARGET, PORT, SCALERS
from adapter.answers.keda.sleep import never_wakes
from adapter.figures import age, count, listed
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.objects import SeenEvent

_WINDOW: Final = 1200.0
"""Seconds for which the last event counts."""
_ADDRESS: Final = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:\.(?P<namespace>[a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_LOOPBACK: Final = re.compile(r"(?:\w+://)?(?:localhost|127\.[0-9.]+|\[::1\])(?:[:/]|$)")
_OPERATOR: Final = "kubectl get deployments -A -l app.kubernetes.io/name=keda-operator"
_RESOURCES: Final = ("cpu", "memory")
_SHOWN: Final = 8
"""Causes of one ScaledObject."""
_KEYS: Final = ("scalerAddress", "serverAddress")
"""Keys of a trigger that name a server: of external scalers, and of Prometheus."""


class SeenScaler(NamedTuple):
    """What was read of the Service that a ``scalerAddress`` names."""

    ports: tuple[int, ...] | None = None
    """None if there is no such Service."""
    pods: int | None = None
    """Its ready endpoints; None if they were not read."""
    policies: tuple[str, ...] = ()
    """The NetworkPolicies of its namespace that have rules for ingress."""


class ScaledFacts(NamedTuple):
    """A ScaledObject and what is around it."""

    now: float
    """Epoch seconds."""
    scaled: SeenScaledObject
    hpa: Mapping[str, Any] | None = None
    """The manifest of its HPA; None if it does not exist."""
    target: bool | None = None
    """Whether its target exists; None if that is not known."""
    rivals: Sequence[str] = ()
    """Other ScaledObjects and HPAs of the same target, as a user names them."""
    events: Sequence[SeenEvent] = ()
    """The warnings about it."""
    services: Mapping[str, SeenScaler] = {}
    """``scalerAddress`` -> its Service; without those that were not read."""
    problem: str = ""
    """What the external metrics API answered instead of values; empty without a problem."""


def host_of(address: str) -> tuple[str, str, int | None]:
    """Return Service, namespace and port of a ``scalerAddress``; empty for what it does not name,
    and all of an address that is not a Service's."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return "", "", None
    port = found["port"]
    return found["name"], found["namespace"] or "", int(port) if port else None


def causes_of_scaled(facts: ScaledFacts) -> list[Cause]:
    """Return why a ScaledObject does not scale its target, the root first."""
    scaled = facts.scaled
    if scaled.paused:
        text = "is paused by an annotation: its workload keeps its size under any load"
        return [_cause(facts, text, "end the pause when it is over", scaled.resume)]
    found = [*_unseen(facts), *_loopback(facts), *_refused(facts), *_rivals(facts)]
    if not found:
        found += [*_scalers(facts), *_default(facts)]
    if not found and facts.hpa is None:
        found += _lost(facts)
    if (asleep := never_wakes(scaled)) is not None:
        found.append(asleep)
    return _some(found)


def _some(causes: list[Cause]) -> list[Cause]:
    """Return the first causes: a ScaledObject may have thousands of triggers."""
    if len(causes) <= _SHOWN:
        return causes
    more, last = len(causes) - _SHOWN, causes[_SHOWN - 1]
    return [*causes[: _SHOWN - 1], last._replace(text=f"{last.text}; {count(more, 'more cause')}")]


def _cause(facts: ScaledFacts, text: str, fix: str, command: str | Fix = "") -> Cause:
    """Return a cause; the command is one, or a change that lasts."""
    scaled = facts.scaled
    if isinstance(command, Fix):
        fix, command = command.advice(fix), command.command
    elif not command:
        command = _shown(scaled)
    return Cause(CauseCode.SCALED_OBJECT, scaled.subject, text, fix, command)


def _shown(scaled: SeenScaledObject) -> str:
    namespace, name = shlex.quote(scaled.namespace), shlex.quote(scaled.name)
    return f"kubectl -n {namespace} describe scaledobject {name}"


def _unseen(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield that the operator has not looked at it: it writes conditions at once."""
    created = facts.scaled.created
    if facts.scaled.conditions or facts.hpa is not None:
        return
    if created is not None and facts.now - created <= CREATION:
        return
    since = "" if created is None else f" for {age(facts.now - created)}"
    yield _cause(
        facts,
        f"KEDA's operator has not looked at it{since}: it has no status and no HPA, so nothing "
        "scales",
        "see whether keda-operator runs, watches this namespace (WATCH_NAMESPACE), and its log; if "
        "KEDA is not installed, but its CustomResourceDefinitions are, install it",
        _OPERATOR,
    )


def _refused(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield what the operator says of it."""
    scaled = facts.scaled
    for row in scaled.conditions:
        if (row.type, row.status) not in (("Ready", "False"), ("Fallback", "True")):
            continue
        what = "is not ready" if row.type == "Ready" else "uses its fallback"
        message = " ".join(f"{row.reason}: {row.message}".split())
        failed = _failures(facts)
        if row.type == "Fallback" or not sign_of(CHECKS, message):
            message += f"; {failed[-1]}" if failed and failed[-1] not in message else ""
        sign = sign_of(CHECKS, message) if row.type == "Ready" else None
        sign = sign or sign_of(SCALERS, message)
        at = _addresses(scaled) if sign in SCALERS else ""
        none = ", and has made no HPA" if facts.hpa is None and row.type == "Ready" else ""
        if facts.target is False and row.type == "Ready":
            sign = NO_TARGET
            message = f"there is no {scaled.kind} {scaled.target} in the namespace ({message})"
        fix = sign.fix if sign is not None else "see its events, and the log of keda-operator"
        command = scaled.edit if sign is not None else ""
        yield _cause(facts, f"{what}{none}: {short(message)}{at}", fix, command)


def _loopback(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield the addresses that are KEDA's own pod (kedacore/keda issue 1856)."""
    for row in facts.scaled.triggers:
        for key in _KEYS:
            address = row.metadata.get(key, "")
            if _LOOPBACK.match(address):
                at = f"{row.path}.metadata.{key}"
                yield _cause(
                    facts,
                    f"{at} is {address}, which is the pod of KEDA itself: nothing listens there "
                    "(connection refused)",
                    f"set {at} to the Service of the server, such as "
                    "http://SERVICE.NAMESPACE.svc:PORT for Prometheus",
                    facts.scaled.edit,
                )


def _failures(facts: ScaledFacts) -> list[str]:
    """Return the present messages of events about scalers that fail, the newest last."""
    rows = [
        row
        for row in facts.events
        if row.type != "Normal" and row.last is not None and facts.now - row.last < _WINDOW
    ]
    return [short(row.message) for row in sorted(rows, key=lambda row: row.last or 0.0)]


def _addresses(scaled: SeenScaledObject) -> str:
    named = [
        f"{row.path}.metadata.{key} is {row.metadata[key]}"
        for row in scaled.triggers
        for key in _KEYS
        if row.metadata.get(key)
    ]
    return f"; {listed(named, 2)}" if named else ""


def _rivals(facts: ScaledFacts) -> Iterator[Cause]:
    if not facts.rivals:
        return
    others = listed(facts.rivals)
    scaled = facts.scaled
    yield _cause(
        facts,
        f"{others} {'scales' if len(facts.rivals) == 1 else 'scale'} {scaled.kind} {scaled.target} "
        "too, and each undoes what the other does",
        "keep one: put the triggers of both into one ScaledObject, and delete the other",
        f"kubectl -n {shlex.quote(scaled.namespace)} get scaledobjects,hpa",
    )


def _scalers(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield the addresses of scalers that nobody answers at."""
    for trigger in facts.scaled.triggers:
        address = trigger.metadata.get("scalerAddress", "")
        known = facts.services.get(address)
        if known is None or not host_of(address)[0]:
            continue  # not read, or outside of the cluster
        if (wrong := _address(facts, trigger, known)) is not None:
            yield wrong
    # What KEDA itself says decides, if every address looks right.
    said = [*_failures(facts), *([facts.problem] if facts.problem else [])]
    row = next((text for text in said if sign_of(SCALERS, text)), "")
    sign = sign_of(SCALERS, row)
    if sign is not None and _addresses(facts.scaled):
        policies = sorted({name for one in facts.services.values() for name in one.policies})
        may = f"; NetworkPolicy {', '.join(policies[:3])} may do so" if policies else ""
        yield _cause(
            facts,
            f"KEDA gets no answer from the scaler: {short(row)}{_addresses(facts.scaled)}",
            f"{sign.fix}{may if sign is SCALERS[-1] else ''}",
            facts.scaled.edit if sign is not SCALERS[-1] else _shown(facts.scaled),
        )


def _address(facts: ScaledFacts, trigger: SeenTrigger, known: SeenScaler) -> Cause | None:
    """Return what is wrong with the Service of an address; None if it has the port, and pods."""
    address = trigger.metadata["scalerAddress"]
    name, namespace, port = host_of(address)
    at = f"{trigger.path}.metadata.scalerAddress"
    text = f"{at} is {address}, and"
    right = f"{name}.{namespace}:{PORT}"
    if not namespace:
        return _cause(
            facts,
            f"{text} it names no namespace: KEDA looks for Service {name} in its own",
            f"set it to {name}.NAMESPACE:{PORT}, with the namespace of the adapter",
            facts.scaled.edit,
        )
    service = f"Service {namespace}/{name}"
    if known.ports is None:
        return _cause(
            facts,
            f"{text} there is no {service}",
            f"correct it to the Service of the adapter: SERVICE.NAMESPACE:{PORT}",
            facts.scaled.edit,
        )
    shown = ", ".join(map(str, known.ports)) or "none"
    if PORT in known.ports and port != PORT and (trigger.ours or port not in known.ports):
        return _cause(
            facts,
            f"{text} KEDA's port of {service} is {PORT} (it has {shown})",
            f'set {at} to "{right}"',
            facts.scaled.patch(at, right),
        )
    if port not in known.ports:
        return _cause(
            facts,
            f"{text} {service} has no such port (it has {shown})",
            f"turn on keda.enabled of the adapter, whose Service then has port {PORT}, or correct "
            "the port",
            f"kubectl -n {shlex.quote(namespace)} get service {shlex.quote(name)} -o wide",
        )
    if known.pods == 0:
        return _cause(
            facts,
            f"{text} no pod of {service} is ready",
            "see why the pods of the scaler are not ready",
            f"kubectl -n {shlex.quote(namespace)} get pods,endpointslices -o wide",
        )
    return None


def _default(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield that KEDA made the HPA with the API server's default metric."""
    rows = (facts.hpa or {}).get("spec", {}).get("metrics") or ()
    names = {str((row.get("resource") or {}).get("name")) for row in rows}
    kinds = {str(row.get("type")) for row in rows}
    asked = any(trigger.type in _RESOURCES for trigger in facts.scaled.triggers)
    if facts.hpa is None or kinds != {"Resource"} or names != {"cpu"} or asked:
        return
    hpa = facts.scaled.hpa
    yield _cause(
        facts,
        f"HPA {hpa}, which KEDA made of it, has none of its triggers, but the default metric, 80 % "
        "of CPU: the scaler did not answer when KEDA made the HPA",
        "see that the scaler answers, and delete the HPA: KEDA makes it again, with the triggers",
        f"kubectl -n {shlex.quote(facts.scaled.namespace)} delete hpa {shlex.quote(hpa)}",
    )


def _lost(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield that its HPA does not exist, though KEDA has had the time to make it."""
    created = facts.scaled.created
    if created is not None and facts.now - created <= CREATION:
        return
    yield _cause(
        facts,
        f"its HPA {facts.scaled.hpa} does not exist, so nothing scales above 1",
        "see whether keda-operator runs, and its log: it makes the HPA again at its next look",
        _OPERATOR,
    )
