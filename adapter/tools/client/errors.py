"""Failures of the user's tools: one line that names the thing and the next step."""

from __future__ import annotations

import json
import re
import shlex
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

VIEW_GROUP: Final = "view.gpu-metrics-adapter.io"
VIEW: Final = f"/apis/{VIEW_GROUP}/v1alpha1"
"""Path of the view API."""


class ClientError(Exception):
    """The tool could not look; the message is one line."""

    def __init__(self, message: str, status: int = 0, reason: str = "", answer: str = "") -> None:
        super().__init__(" ".join(message.split()))
        self.status = status
        """HTTP status; 0 without a response."""
        self.reason = reason
        """``reason`` of the API server's Status, such as ``NotFound``."""
        self.answer = answer
        """The API server's own message."""

    @property
    def brief(self) -> str:
        """The message without the server's address, for a remark beside other output."""
        return str(self).partition("; server: ")[0]


_ODD: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def odd_answers(file: str = "") -> Iterator[None]:
    """Turn the errors that an answer of another form causes into a ClientError.

    The server of an aggregated API, or a proxy, may answer with other types than the API has.

    Args:
        file: that is read, instead of a cluster.
    """
    try:
        yield
    except _ODD as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:200]
        advice = "compare the versions of this command and of the cluster, and report it"
        raise ClientError(
            f"{file or 'an object of the cluster'} has a form that this command does not know "
            f"({type(error).__name__}: {text}; {Path(frame.filename).name} line {frame.lineno}): "
            f"{'report it' if file else advice}"
        ) from error


class MissingRight(NamedTuple):
    """What the API server's 403 says."""

    user: str
    verb: str
    resource: str
    """With its subresource: ``pods/log``."""
    group: str
    namespace: str
    """Empty if the right is for the whole cluster."""

    @property
    def full(self) -> str:
        """The resource with its group, as kubectl writes it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


_FORBIDDEN: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)"'
    r' in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_BY_METRIC: Final = ("custom.metrics.k8s.io", "external.metrics.k8s.io")
"""Groups whose resources are metrics."""
_ACCOUNT: Final = "system:serviceaccount:"
_UNSAFE: Final = re.compile(r"[^a-z0-9.-]+")


def missing_right(message: str) -> MissingRight | None:
    """Return the right that a 403 of the API server's RBAC names; None for another text."""
    refusal = _FORBIDDEN.search(message)
    if refusal is None:
        return None
    user, verb, resource, group, namespace = refusal.group(
        "user", "verb", "resource", "group", "namespace"
    )
    return MissingRight(user, verb, resource, group, namespace or "")


GRANTED: Final = "; an administrator grants it with `"
"""Stands between a missing right and the command that grants it."""


def describe_missing(right: MissingRight) -> str:
    """Return the missing right, the user, and the command that grants it."""
    where = f"in namespace {right.namespace}" if right.namespace else "in the whole cluster"
    return f"{right.user} may not {right.verb} {right.full} {where}{GRANTED}{grant(right)}`"


def grant(right: MissingRight) -> str:
    """Return the kubectl command that grants a right, to read or to do once."""
    verbs = "get,list" if right.verb in ("get", "list") else right.verb
    role = _name(f"{verbs}-{right.full}")
    scope = f" -n {shlex.quote(right.namespace)}" if right.namespace else ""
    kind, binding = ("role", "rolebinding") if scope else ("clusterrole", "clusterrolebinding")
    subject = f"--user={shlex.quote(right.user)}"
    if right.user.startswith(_ACCOUNT):
        subject = f"--serviceaccount={shlex.quote(right.user.removeprefix(_ACCOUNT))}"
    if right.group in _BY_METRIC:
        return _apply(right, role, _name(f"{role}-{right.user}"))
    resource = shlex.quote(_with_subresource(right))
    bound = _name(f"{role}-{right.user}")
    return create_again(
        f"{kind} {role}{scope} --verb={verbs} --resource={resource}",
        f"{binding} {bound}{scope} --{kind}={role} {subject}",
    )


def create_again(*objects: str) -> str:
    """Return the commands that create objects, and that succeed if some of them exist.

    Args:
        objects: what follows ``kubectl create``.
    """
    applied = "--dry-run=client -o yaml | kubectl apply -f -"
    return " && ".join(f"kubectl create {words} {applied}" for words in objects)


def _apply(right: MissingRight, role: str, binding: str) -> str:
    """kubectl create role refuses resources that discovery lists only with their metrics."""
    kind = "Role" if right.namespace else "ClusterRole"
    version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    scope = {"namespace": right.namespace} if right.namespace else {}
    subject = {"kind": "User", "name": right.user, "apiGroup": group}
    if right.user.startswith(_ACCOUNT):
        namespace, _, name = right.user.removeprefix(_ACCOUNT).partition(":")
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": ["get", "list"]}
    rows = [
        {"kind": kind, "metadata": {"name": role, **scope}, "rules": [rule]},
        {
            "kind": f"{kind}Binding",
            "metadata": {"name": binding, **scope},
            "roleRef": {"kind": kind, "name": role, "apiGroup": group},
            "subjects": [subject],
        },
    ]
    items = [{"apiVersion": version, **row} for row in rows]
    manifest = {"apiVersion": "v1", "kind": "List", "items": items}
    return f"echo {shlex.quote(json.dumps(manifest))} | kubectl apply -f -"


def describe_missing_view(reason: str) -> str:
    """Return the next step if the view API does not answer."""
    return (
        f"the cluster does not serve {VIEW_GROUP} ({reason}): gpu-metrics-adapter is not "
        f"installed, is older than this command, or has view.enabled=false; see `kubectl get "
        f"apiservice v1alpha1.{VIEW_GROUP}`, then install or upgrade the chart"
    )


def describe_silent_view(reason: str) -> str:
    """Return the next step if the view API is registered, and its server does not answer."""
    return (
        f"{VIEW_GROUP} is registered and does not answer ({reason}): see the adapter's pods; "
        f"`kubectl describe apiservice v1alpha1.{VIEW_GROUP}` names their Service and the reason"
    )


def _with_subresource(right: MissingRight) -> str:
    """Write pods/log of a group as kubectl expects: ``pods.group/log``."""
    resource, slash, sub = right.resource.partition("/")
    group = f".{right.group}" if right.group else ""
    return f"{resource}{group}{slash}{sub}"


def _name(text: str) -> str:
    """Return an object name that resembles the text."""
    return _UNSAFE.sub("-", text.lower().replace("*", "any")).strip("-.")[:200]
