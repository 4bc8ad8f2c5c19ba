"""Why a ScaledObject has no HPA, or its triggers give no value: causes, each with its fix.

KEDA writes ``Ready: False`` with ``ScaledObjectCheckFailed`` and no HPA if a ScaledObject is not
valid (``controllers/keda/scaledobject_controller.go``), deletes the HPA of a paused one, and writes
what a scaler answers as events ``KEDAScalerFailed``. From 2.21 on, ``ErrorScalingTarget`` says that
it could not scale the target itself, to or from 0. A scaler that does not answer while KEDA makes
the HPA leaves an HPA with the default metric, 80 % of CPU (kedacore/keda issues 5787 and 7729).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from adapter.answers.causes import Cause, CauseCode
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.target import shorten
from adapter.answers.judgement.judge import CREATION
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.scalersigns import CHECKS, NO_TARGET, PORT, SCALERS, UNSCALED
from adapter.answers.keda.sleep import never_wakes
from adapter.figures import age, count, join_names
from adapter.pipeline.cluster.fixes import Fix
from adapter.pipeline.cluster.objects import SeenEvent

_WINDOW: Final = 1200.0
"""Seconds for which the last event counts."""
_HOST: Final = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:\.(?P<namespace>[a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?"
)
_LOOPBACK: Final = re.compile(r"(?:\w+://)?(?:localhost|127\.[0-9.]+|\[::1\])(?:[:/]|$)")
_COMPLAINTS: Final = (("Ready", "False"), ("Fallback", "True"))
"""Type and status of the conditions by which KEDA complains."""
_OPERATOR: Final = "kubectl get deployments -A -l app.kubernetes.io/name=keda-operator"
_RESOURCES: Final = ("cpu", "memory")
_PORTS: Final = {"http": "80", "https": "443"}
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NUMBER: Final = re.compile(r"[0-9]{1,5}")
_OF_TARGET: Final = "KEDAScaleTarget"
"""What the reasons of events about the target begin with: they say nothing of scalers, though their
messages may, such as ``context deadline exceeded`` of the API server."""
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
    """Address of a trigger -> its Service; without those that were not read."""
    problem: str = ""
    """What the external metrics API answered instead of values; empty without a problem."""
    port: int = PORT
    """On which the pods of the adapter serve KEDA, by its settings."""


def addresses_of(scaled: SeenScaledObject) -> list[str]:
    """Return the addresses of servers that triggers name."""
    rows = (row.metadata.get(key, "") for row in scaled.triggers for key in _KEYS)
    return [address for address in rows if address]


def host_of(address: str) -> tuple[str, str, int | None]:
    """Return Service, namespace and port of an address of a trigger; empty for what it does not
    name. Another host than that of a Service has neither. A URL has the port of its scheme."""
    scheme, separator, rest = address.rpartition("://")
    bare = rest.partition("/")[0] if separator else address
    host, colon, port = bare.rpartition(":")
    if not colon:
        host, port = bare, _PORTS.get(scheme, "")
    match = _HOST.fullmatch(host)
    number = int(port) if _NUMBER.fullmatch(port) else None
    if match is None:
        return "", "", number
    return match["name"], match["namespace"] or "", number


def causes_of_scaled(facts: ScaledFacts) -> list[Cause]:
    """Return why a ScaledObject does not scale its target, the root first."""
    scaled = facts.scaled
    if scaled.paused:
        text = "is paused by an annotation: its workload keeps its size under any load"
        return [_cause(facts, text, "end the pause when it is over", scaled.resume)]
    wrong = list(address_causes(facts))
    causes = [
        *_unseen_by_operator(facts),
        *wrong,
        *_operator_complaints(facts, wrong=bool(wrong)),
        *_rivals(facts),
    ]
    if not causes:
        causes += _silent_scalers(facts)
    if causes in ([], wrong):
        causes += _default_metric(facts)
    if not causes and facts.hpa is None:
        causes += _lost_hpa(facts)
    if (asleep := never_wakes(scaled)) is not None:
        causes.append(asleep)
    return _first_causes(causes)


def _first_causes(causes: list[Cause]) -> list[Cause]:
    """Return the first causes: a ScaledObject may have thousands of triggers."""
    if len(causes) <= _SHOWN:
        return causes
    more, last = len(causes) - _SHOWN, causes[_SHOWN - 1]
    return [*causes[: _SHOWN - 1], last._replace(text=f"{last.text}; {count(more, 'more cause')}")]


def _cause(
    facts: ScaledFacts,
    text: str,
    fix: str,
    command: str | Fix = "",
    code: CauseCode = CauseCode.SCALED_OBJECT,
) -> Cause:
    """Return a cause; the command is one, or a change that lasts."""
    scaled = facts.scaled
    if isinstance(command, Fix):
        fix, command = command.advice(fix), command.command
    elif not command and not scaled.origin:
        command = _describe_command(scaled)
    return Cause(code, scaled.subject, text, fix, command)


def _describe_command(scaled: SeenScaledObject) -> str:
    namespace, name = shlex.quote(scaled.namespace), shlex.quote(scaled.name)
    return f"kubectl -n {namespace} describe scaledobject {name}"


def _unseen_by_operator(facts: ScaledFacts) -> Iterator[Cause]:
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


def _operator_complaints(facts: ScaledFacts, *, wrong: bool) -> Iterator[Cause]:
    """Yield what the operator says of it.

    Args:
        wrong: an address is known to be wrong. What KEDA says of scalers follows from it.
    """
    scaled = facts.scaled
    for row in scaled.conditions:
        if (row.type, row.status) not in _COMPLAINTS:
            continue
        what = "is not ready" if row.type == "Ready" else "uses its fallback"
        message = " ".join(f"{row.reason}: {row.message}".split())
        failed = _failures(facts)
        if row.type == "Fallback" or not sign_of(CHECKS, message):
            message += f"; {failed[-1]}" if failed and failed[-1] not in message else ""
        sign = sign_of(CHECKS, message) if row.type == "Ready" else None
        if wrong and sign is None and facts.target is not False:
            continue
        sign = sign or sign_of(SCALERS, message) or _cut_off(scaled, message)
        addresses = _addresses(scaled) if sign in SCALERS else ""
        none = ", and has made no HPA" if facts.hpa is None and row.type == "Ready" else ""
        if facts.target is False and row.type == "Ready":
            sign = NO_TARGET
            message = f"there is no {scaled.kind} {scaled.target} in the namespace ({message})"
        fix = sign.fix if sign is not None else "see its events, and the log of keda-operator"
        command = scaled.edit if sign not in (None, UNSCALED) else ""
        yield _cause(facts, f"{what}{none}: {shorten(message)}{addresses}", fix, command)


def _cut_off(scaled: SeenScaledObject, message: str) -> Sign | None:
    """Return what to do about a message that names the address of a trigger and not what is wrong
    there: the API server and KEDA cut long messages."""
    for row in scaled.triggers:
        for key in _KEYS:
            address = row.metadata.get(key, "")
            if (host := urlsplit(address if "://" in address else f"//{address}").hostname) and (
                host in message
            ):
                path = f"{row.path}.metadata.{key}"
                return Sign(
                    (host,),
                    f"see what answers at {path}, {address}: ask it from a pod in the namespace of "
                    "KEDA; the log of keda-operator has the whole message",
                )
    return None


def address_causes(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield the addresses of triggers that nobody answers at, each with one cause."""
    for trigger in facts.scaled.triggers:
        for key in _KEYS:
            if trigger.metadata.get(key) and (cause := _of_address(facts, trigger, key)):
                yield cause


def _of_address(facts: ScaledFacts, trigger: SeenTrigger, key: str) -> Cause | None:
    address, path = trigger.metadata[key], f"{trigger.path}.metadata.{key}"
    service = facts.services.get(address)
    if _LOOPBACK.match(address):
        return _loopback(facts, path, address)
    ours = key == "scalerAddress" and trigger.ours
    if ours and (
        cause := _misspelt_address(facts, path, address, service_read=service is not None)
    ):
        return cause
    if service is None or not host_of(address)[0] or not _must_be_service(facts, trigger, key):
        return None  # not read, or outside of the cluster
    cause = _address(facts, trigger, key, service)
    return (
        _misspelt_address(facts, path, address, service_read=False)
        if ours and cause is None
        else cause
    )


def _must_be_service(facts: ScaledFacts, trigger: SeenTrigger, key: str) -> bool:
    """Return whether a host can only be a Service: one with two names may be outside, unless KEDA
    complains."""
    address = trigger.metadata[key]
    return (
        key == "scalerAddress"
        or ".svc" in address
        or bool(_failures(facts))
        or any((row.type, row.status) in _COMPLAINTS for row in facts.scaled.conditions)
    )


def _loopback(facts: ScaledFacts, at: str, address: str) -> Cause:
    """Return that an address is KEDA's own pod (kedacore/keda issue 1856)."""
    return _cause(
        facts,
        f"{at} is {address}, which is the pod of KEDA itself: nothing listens there "
        "(connection refused)",
        f"set {at} to the Service of the server, such as http://SERVICE.NAMESPACE.svc:PORT for "
        "Prometheus",
        facts.scaled.edit,
        CauseCode.SCALER_ADDRESS,
    )


def _misspelt_address(
    facts: ScaledFacts, at: str, address: str, *, service_read: bool
) -> Cause | None:
    """Return what is wrong with an address of the adapter as it is written.

    Args:
        service_read: its Service was read, whose ports say more than the number.
    """
    scheme = _SCHEME.match(address)
    bare = (address[scheme.end() :] if scheme else address).partition("/")[0]
    host, colon, port = bare.rpartition(":")
    if not colon or "]" in port:
        host, port = bare, ""
    if scheme:
        why = "has a scheme, and KEDA takes HOST:PORT"
    elif bare != address:
        why = "has a path, and KEDA takes HOST:PORT"
    elif not _NUMBER.fullmatch(port):
        why = f"has no port, and KEDA's port is {PORT}"
    elif not service_read and int(port) not in (PORT, facts.port):
        why = f"names port {port}, and KEDA's port is {PORT}"
    else:
        return None
    return _cause(
        facts,
        f"{at} is {address}, which {why}",
        f'set {at} to "{host}:{PORT}"',
        facts.scaled.patch(at, f"{host}:{PORT}"),
        CauseCode.SCALER_ADDRESS,
    )


def _failures(facts: ScaledFacts) -> list[str]:
    """Return the present messages of events about scalers that fail, the newest last."""
    rows = [
        row
        for row in facts.events
        if row.type != "Normal" and not row.reason.startswith(_OF_TARGET)
        if row.last is not None and facts.now - row.last < _WINDOW
    ]
    return [shorten(row.message) for row in sorted(rows, key=lambda row: row.last or 0.0)]


def _addresses(scaled: SeenScaledObject) -> str:
    addresses = [
        f"{row.path}.metadata.{key} is {row.metadata[key]}"
        for row in scaled.triggers
        for key in _KEYS
        if row.metadata.get(key)
    ]
    return f"; {join_names(addresses, 2)}" if addresses else ""


def _rivals(facts: ScaledFacts) -> Iterator[Cause]:
    if not facts.rivals:
        return
    others = join_names(facts.rivals)
    scaled = facts.scaled
    yield _cause(
        facts,
        f"{others} {'scales' if len(facts.rivals) == 1 else 'scale'} {scaled.kind} {scaled.target} "
        "too, and each undoes what the other does",
        "keep one: put the triggers of both into one ScaledObject, and delete the other",
        f"kubectl -n {shlex.quote(scaled.namespace)} get scaledobjects,hpa",
    )


def _silent_scalers(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield what KEDA itself says of scalers, if every address looks right."""
    messages = [*_failures(facts), *([facts.problem] if facts.problem else [])]
    row = next((text for text in messages if sign_of(SCALERS, text)), "")
    sign = sign_of(SCALERS, row)
    if sign is not None and _addresses(facts.scaled):
        policies = sorted(
            {name for service in facts.services.values() for name in service.policies}
        )
        may = f"; NetworkPolicy {', '.join(policies[:3])} may do so" if policies else ""
        yield _cause(
            facts,
            f"KEDA gets no answer from the scaler: {shorten(row)}{_addresses(facts.scaled)}",
            f"{sign.fix}{may if sign is SCALERS[-1] else ''}",
            facts.scaled.edit if sign is not SCALERS[-1] else _describe_command(facts.scaled),
        )


def _address(
    facts: ScaledFacts, trigger: SeenTrigger, key: str, seen_scaler: SeenScaler
) -> Cause | None:
    """Return what is wrong with the Service of an address; None if it has the port, and pods."""
    address = trigger.metadata[key]
    name, namespace, port = host_of(address)
    path = f"{trigger.path}.metadata.{key}"
    text = f"{path} is {address}, and"
    scaler = key == "scalerAddress"
    right = f"{name}.{namespace}:{PORT}"
    of = "the adapter" if trigger.ours else "the server"
    command: str | Fix = facts.scaled.edit
    service = f"Service {namespace}/{name}"
    shown = ", ".join(map(str, seen_scaler.ports or ())) or "none"
    if not namespace:
        text += f" it names no namespace: KEDA looks for Service {name} in its own"
        form = f"{name}.NAMESPACE:{PORT}" if scaler else f"{name}.NAMESPACE.svc"
        fix = f"set it to {form}, with the namespace of {of}"
    elif seen_scaler.ports is None:
        text += f" there is no {service}"
        form = f"SERVICE.NAMESPACE:{PORT}" if scaler else "http://SERVICE.NAMESPACE.svc:PORT"
        fix = f"correct it to the Service of {of}: {form}"
    elif scaler and _other_port(trigger, seen_scaler, port):
        text += f" KEDA's port of {service} is {PORT} (it has {shown})"
        fix, command = f'set {path} to "{right}"', facts.scaled.patch(path, right)
    elif port not in seen_scaler.ports:
        text += f" {service} has no such port (it has {shown})"
        fix = "correct the port"
        if scaler:
            fix = f"turn on keda.enabled of the adapter, whose Service then has port {PORT}, or "
            fix += "correct the port"
        command = f"kubectl -n {shlex.quote(namespace)} get service {shlex.quote(name)} -o wide"
    elif seen_scaler.pods == 0:
        text += f" no pod of {service} is ready"
        fix = "see why the pods of the scaler are not ready"
        command = f"kubectl -n {shlex.quote(namespace)} get pods,endpointslices -o wide"
    else:
        return None
    return _cause(facts, text, fix, command, CauseCode.SCALER_ADDRESS)


def _other_port(trigger: SeenTrigger, seen_scaler: SeenScaler, port: int | None) -> bool:
    """Return whether the Service has KEDA's port, and the trigger names another one."""
    ports = seen_scaler.ports or ()
    return PORT in ports and port != PORT and (trigger.ours or port not in ports)


def _default_metric(facts: ScaledFacts) -> Iterator[Cause]:
    """Yield that KEDA made the HPA with the API server's default metric."""
    rows = (facts.hpa or {}).get("spec", {}).get("metrics") or ()
    names = {str((row.get("resource") or {}).get("name")) for row in rows}
    kinds = {str(row.get("type")) for row in rows}
    asks_resource = any(trigger.type in _RESOURCES for trigger in facts.scaled.triggers)
    if facts.hpa is None or kinds != {"Resource"} or names != {"cpu"} or asks_resource:
        return
    hpa = facts.scaled.hpa
    yield _cause(
        facts,
        f"HPA {hpa}, which KEDA made of it, has none of its triggers, but the default metric, 80 % "
        "of CPU: the scaler did not answer when KEDA made the HPA",
        "see that the scaler answers, and delete the HPA: KEDA makes it again, with the triggers",
        f"kubectl -n {shlex.quote(facts.scaled.namespace)} delete hpa {shlex.quote(hpa)}",
    )


def _lost_hpa(facts: ScaledFacts) -> Iterator[Cause]:
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
