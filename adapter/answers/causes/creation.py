"""Pods that are never created: a quota, Pod Security or another admission forbids them.

The ReplicaSet controller writes the event ``FailedCreate`` and the condition ``ReplicaFailure``
with the API server's message; the Deployment controller copies the condition. The StatefulSet
controller writes the event only. Messages: ``exceeded quota: NAME, requested: …, used: …,
limited: …`` (ministryofjustice/cloud-platform issue 590), ``failed quota: NAME: must specify …``
(kubernetes/website pull request 641), ``violates PodSecurity "restricted:latest": …``
(tektoncd/triggers pull request 1477), ``admission webhook "…" denied the request: …``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from adapter.answers.causes import fixes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import KubeKey, key_of
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.target import Target
from adapter.figures import count
from adapter.hpa import quantity
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.pipeline.cluster.workloadobjects import SeenWorkload

_WINDOW: Final = 1200.0
"""Seconds for which an event without a condition counts: the controllers try again after at most
1000 s (client-go's ``DefaultControllerRateLimiter``)."""
_EXCEEDED: Final = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<requested>.*?), used: (?P<used>.*?), "
    r"limited: (?P<limited>.*)"
)
_UNSPECIFIED: Final = re.compile(
    r"failed quota: (?P<name>\S+): must specify (?:for: )?(?P<what>.*)"
)
_SECURITY: Final = re.compile(r'violates PodSecurity "(?P<level>[^"]+)": (?P<what>.*)')
_WEBHOOK: Final = re.compile(r'failed calling webhook "(?P<name>[^"]+)"')
"""The API server could not ask a webhook, whose ``failurePolicy`` is ``Fail``: its certificate has
expired (istio/istio issue 25181), or nobody answers."""
_WEBHOOKS: Final = "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"
_SERVER: Final = re.compile(r"https://(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc")
"""The Service of a webhook, in the address that the API server has asked."""
_ACCOUNT: Final = re.compile(r'serviceaccount "(?P<name>[^"]+)" not found')
_ADMISSIONS: Final = (
    Sign(
        ("no priorityclass with name",),
        "create this PriorityClass (`kubectl get priorityclasses` lists those that exist), or "
        "correct priorityClassName in the pod template",
        template=True,
    ),
    Sign(
        ("insufficient quota to match these scopes",),
        "create a ResourceQuota with this scope in the namespace, as GKE wants for pods of "
        "system-node-critical and system-cluster-critical, or name another priorityClassName in "
        "the pod template",
        template=True,
    ),
    Sign(
        ("runtimeclass",),
        "create this RuntimeClass, which the GPU operator or the container toolkit's chart does, "
        "or correct runtimeClassName in the pod template (`kubectl get runtimeclasses`)",
        template=True,
    ),
    Sign(
        ("serviceaccount", "service account"),
        "create this ServiceAccount in the namespace of the pods, or correct serviceAccountName in "
        "the pod template",
        template=True,
    ),
    Sign(
        ("security context constraint",),
        "give the ServiceAccount of the pods a SecurityContextConstraints that admits them "
        "(oc adm policy add-scc-to-user), or change securityContext of the pod template",
        template=True,
    ),
    Sign(
        ("being terminated",),
        "the namespace is being deleted: create the workload in another one",
    ),
    Sign(
        ("is invalid", "must be", "must match", "unsupported value"),
        "correct the field of the pod template that the message names",
        template=True,
    ),
)
"""What the API server says of pods that it does not create, and what to do."""
_LIMITED: Final = re.compile(r"(?:maximum|minimum) \S+ usage per |limit to request ratio per ")
"""Of the admission plugin LimitRanger (``plugin/pkg/admission/limitranger`` of Kubernetes)."""
_NAMED: Final = re.compile(r"^.*?pods? \"[^\"]*\" is forbidden: ")
_CREATING: Final = re.compile(r"^(?:\(combined from similar events\): )?(?:Error creating: )?")
_LONGEST: Final = 400


class PodRefusal(NamedTuple):
    """The API server's refusal of pods."""

    message: str
    owner: KubeKey
    """The ReplicaSet or StatefulSet that cannot create its pods."""
    missing: int
    """Pods that do not exist."""
    times: int
    since: float | None


def causes(target: Target) -> Iterator[Cause]:
    """Yield why pods of the target are not created."""
    seen_codes: set[CauseCode] = set()
    for refusal in _refusals(target):
        cause = _cause(target, refusal)
        if cause.code not in seen_codes:
            seen_codes.add(cause.code)
            yield cause


def of_daemonset(target: Target, missing: int) -> Cause | None:
    """Return why a DaemonSet cannot create a pod, by its events; None if they do not say it."""
    refusal = _refusal(target, target.hpa.of, missing)
    return None if refusal is None else _cause(target, refusal)


def _refusals(target: Target) -> Iterator[PodRefusal]:
    rows = [
        *_present_workloads(target),
        *([target.workload] if target.workload is not None else ()),
    ]
    for workload in rows:
        key = key_of(workload)
        _, pods = target.facts.below(key)
        missing = workload.spec.replicas - len(pods)
        if missing <= 0:
            continue
        refusal = _refusal(target, key, missing, workload.status.of("ReplicaFailure"))
        if refusal is not None:
            yield refusal


def _refusal(
    target: Target, key: KubeKey, missing: int, condition: SeenCondition | None = None
) -> PodRefusal | None:
    events = sorted(
        target.facts.events_of(key, "FailedCreate"), key=lambda event: event.last or 0.0
    )
    times = sum(event.times for event in events)
    if condition is not None and condition.status == "True":
        return PodRefusal(condition.message, key, missing, times, condition.since)
    if events and not target.facts.past(events[-1].last, _WINDOW):
        first = min((event.first for event in events if event.first), default=None)
        return PodRefusal(events[-1].message, key, missing, times, first)
    return None


_REVISION: Final = "deployment.kubernetes.io/revision"


def _present_workloads(target: Target) -> list[SeenWorkload]:
    """Return the workloads below the target, without ReplicaSets of an older template: a rollout
    replaces their pods, so it does not matter that they cannot create any.
    """
    newest = max((_revision(row) for row in target.inner if row.spec.replicas), default=0)
    return [row for row in target.inner if not 0 < _revision(row) < newest]


def _revision(workload: SeenWorkload) -> int:
    text = workload.metadata.annotations.get(_REVISION, "")
    return int(text) if text.isdigit() and workload.kind == "ReplicaSet" else 0


def _cause(target: Target, refusal: PodRefusal) -> Cause:
    lack = count(refusal.missing, "pod")
    verb = "is" if refusal.missing == 1 else "are"
    often = f", tried {refusal.times} times" if refusal.times > 1 else ""
    since = target.facts.ago(refusal.since) + often
    message = _CREATING.sub("", " ".join(refusal.message.split()))
    if match := _EXCEEDED.search(message):
        return _exceeded_quota(target, refusal, match, f"{lack} {verb} not created{since}")
    if match := _UNSPECIFIED.search(message):
        name, what = match["name"], match["what"]
        return target.cause(
            CauseCode.QUOTA,
            f"{lack} {verb} not created{since}: ResourceQuota {name} needs every container to "
            f"state {_shorten(what)}",
            f"set {_shorten(what)} of every container in the pod template",
            fixes.edit(target.changed),
            since=refusal.since,
        )
    if match := _SECURITY.search(message):
        text = f"{lack} {verb} not created{since}: Pod Security {match['level']} forbids them: "
        return target.cause(
            CauseCode.POD_SECURITY,
            text + _shorten(match["what"]),
            "set these fields in the pod template, or move the workload to a namespace of another "
            "level",
            _secure(target, match["what"]),
            since=refusal.since,
        )
    fix, command = _of_policy(target, message)
    return target.cause(
        CauseCode.ADMISSION,
        f"{lack} {verb} not created{since}: {_shorten(_NAMED.sub('', message))}",
        fix,
        command or fixes.describe(refusal.owner),
        since=refusal.since,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _of_policy(target: Target, message: str) -> tuple[str, str | ObjectChange]:
    """Return what lets the pods pass, and a command that shows what stops them; empty for none."""
    if match := _WEBHOOK.search(message):
        name = match["name"]
        fix = f"see whether the server of webhook {name} runs and answers"
        if "x509" in message or "certificate" in message:
            fix = f"renew the certificate of webhook {name}, and caBundle of its configuration"
        fix += ", or remove the configuration if its program is gone"
        server = _SERVER.search(message)
        if server is None:
            return fix, _WEBHOOKS
        where = f"Service {server['namespace']}/{server['service']}"
        return f"{fix}: it is {where}", (
            f"kubectl -n {server['namespace']} get pods,endpointslices -o wide"
        )
    if _LIMITED.search(message):
        where = shlex.quote(target.hpa.namespace)
        return (
            (
                "change the requests and limits of the pod template to what the LimitRange of the "
                "namespace allows, or change the LimitRange"
            ),
            f"kubectl -n {where} describe limitranges",
        )
    if match := _ACCOUNT.search(message):
        name, where = shlex.quote(match["name"]), shlex.quote(target.hpa.namespace)
        return _ADMISSIONS[2].fix, f"kubectl -n {where} create serviceaccount {name}"
    sign = sign_of(_ADMISSIONS, message)
    if sign is not None:
        return sign.fix, fixes.edit(target.changed) if sign.template else ""
    return "change the pod template as the message says, or the policy that forbids it", ""


def _exceeded_quota(target: Target, refusal: PodRefusal, match: re.Match[str], text: str) -> Cause:
    name = match["name"]
    requested, used, limited = map(_amounts, (match["requested"], match["used"], match["limited"]))
    short = {
        resource: (need, used[resource], limited[resource])
        for resource, need in requested.items()
        if resource in used and resource in limited
        if used[resource] + need > limited[resource]
    }
    parts = [f"{r}: {u} of {most} used, {need} more each" for r, (need, u, most) in short.items()]
    quota = KubeKey(target.hpa.namespace, "ResourceQuota", name)
    wanted = {r: str(u + need * refusal.missing) for r, (need, u, _) in short.items()}
    raised = " and ".join(f"{resource} to {most}" for resource, most in wanted.items())
    return target.cause(
        CauseCode.QUOTA,
        f"{text}: ResourceQuota {name} is used up ({'; '.join(parts) or match['limited']})",
        f"raise ResourceQuota {name}{f': {raised}' if raised else ''}, or lower "
        f"{'minReplicas and ' if target.hpa.low > 1 else ''}maxReplicas; pods "
        "are tried again within 17 minutes",
        _raise(quota, wanted) if wanted else fixes.describe(quota),
        since=refusal.since,
        subject=str(quota),
    )


def _raise(quota: KubeKey, wanted: Mapping[str, str]) -> str:
    """Return a command that raises a quota. What manages it is not known: no fact is about it."""
    of = ChangedObject(quota.kind, quota.namespace, quota.name)
    return fixes.merge(of, {"spec": {"hard": wanted}}).command


def _amounts(text: str) -> dict[str, Decimal]:
    """Return resource -> amount of ``requests.nvidia.com/gpu=1,pods=3``."""
    amounts = {}
    for part in text.split(","):
        name, equals, amount = part.strip().rpartition("=")
        if equals:
            try:
                amounts[name] = quantity.parse(amount)
            except ValueError:
                continue
    return amounts


_FIELDS: Final[tuple[tuple[str, dict[str, Any], dict[str, Any]], ...]] = (
    ("allowPrivilegeEscalation", {}, {"allowPrivilegeEscalation": False}),
    ("unrestricted capabilities", {}, {"capabilities": {"drop": ["ALL"]}}),
    ("runAsNonRoot", {"runAsNonRoot": True}, {}),
    ("seccompProfile", {"seccompProfile": {"type": "RuntimeDefault"}}, {}),
)
"""What a violation names, and what corrects it for the pod and for each container."""
_CONTROL: Final = re.compile(r"(?:^|, )([a-zA-Z ]+?)(?: != [a-z]+)? \(")
"""Names of the controls in a message of Pod Security."""


def _secure(target: Target, what: str) -> ObjectChange:
    """Return the change that corrects the template, if all violations can be corrected so."""
    of, workload = target.changed, target.workload
    field_names = {name for name, _, _ in _FIELDS}
    if workload is None or not set(_CONTROL.findall(what)) <= field_names:
        return fixes.edit(of)
    pod: dict[str, Any] = {}
    container: dict[str, Any] = {}
    for name, of_pod, of_container in _FIELDS:
        if name in what:
            pod |= of_pod
            container |= of_container
    containers = [
        {"name": row.name, "securityContext": container}
        for row in workload.spec.template.spec.containers
    ]
    spec: dict[str, Any] = {"securityContext": pod} if pod else {}
    return fixes.merge_template(of, spec | ({"containers": containers} if container else {}))
