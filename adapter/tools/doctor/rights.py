"""Review the rights of the HPA controller and of the adapter's account."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from adapter.tools.client.access import Api
from adapter.tools.client.errors import (
    GRANTED,
    ClientError,
    MissingRight,
    describe_missing,
    grant,
    missing_right,
)
from adapter.tools.client.hpacommands import CONTROLLER, grant_controller
from adapter.tools.doctor.facts import Review, UnreadError
from adapter.tools.doctor.release import Release

_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ACCOUNT: Final = "system:serviceaccount:"
HPA: Final = f"{_ACCOUNT}{CONTROLLER}"
CUSTOM: Final = "custom.metrics.k8s.io"
_METRIC: Final = "gpu_utilization"


class Right(NamedTuple):
    """A right that an account needs."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


_HPA_NEEDS: Final = (Right("get", CUSTOM, f"pods/{_METRIC}"),)


def adapter_needs(release: Release) -> Iterable[Right]:
    """Yield what the settings of an installation make its account need."""
    settings = release.settings
    for verb in ("list", "watch"):
        yield Right(verb, "", "pods")
        if settings is None or settings.cluster.services:
            yield Right(verb, "", "services")
        if settings is None or settings.cluster.nodes:
            yield Right(verb, "", "nodes")
    if settings is None or settings.authentication.token_review:
        yield Right("create", "authentication.k8s.io", "tokenreviews")
    if settings is None or settings.authorization.subject_access_review:
        yield Right("create", "authorization.k8s.io", "subjectaccessreviews")
    if settings is None or settings.authentication.configmap:
        yield Right("get", "", "configmaps/extension-apiserver-authentication", "kube-system")


async def hpa_reviews(api: Api) -> Sequence[Review]:
    """Review the rights of the HPA controller; raises ClientError."""
    reviews = [await _review(api, HPA, right) for right in _HPA_NEEDS]
    # An HPA may ask for any metric, and the controller's own role may lack the rule.
    command = grant_controller(CUSTOM)
    return [review if review.allowed else review._replace(command=command) for review in reviews]


async def own_reviews(api: Api, release: Release | None) -> Sequence[Review]:
    """Review the rights of the adapter's account; raises ClientError."""
    if release is None:
        return []
    return [await _review(api, _user(release), right) for right in adapter_needs(release)]


async def delegate_reviews(api: Api, release: Release) -> Sequence[Review]:
    """Review the rights without which delegates cannot be asked; raises ClientError.

    The account as which the adapter asks must read metrics, and the adapter must request its
    tokens. Nothing is known of the account behind a token file.
    """
    settings = release.settings
    chosen = settings.delegation if settings else None
    if settings is None or chosen is None or not chosen.delegates or not chosen.service_account:
        return []
    namespace, _, name = chosen.service_account.partition("/")
    groups = sorted({group for delegate in chosen.delegates for group in delegate.api_groups})
    needs = [Right("get", group, "*") for group in groups]
    reviews = [await _review(api, f"{_ACCOUNT}{namespace}:{name}", right) for right in needs]
    token = Right("create", "", "serviceaccounts/token", namespace, name)
    return [*reviews, await _review(api, _user(release), token)]


def _user(release: Release) -> str:
    meta = release.workload.metadata
    name = release.workload.spec.template.spec.service_account_name or "default"
    return f"{_ACCOUNT}{meta.namespace}:{name}"


async def _review(api: Api, user: str, right: Right) -> Review:
    namespace = user.removeprefix(_ACCOUNT).partition(":")[0]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    resource, _, sub = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        # The name of a ConfigMap, or a subresource of others.
        ("name" if resource == "configmaps" else "subresource"): sub,
        "namespace": right.namespace,
    }
    if right.name:
        attributes["name"] = right.name
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": [*groups, "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    answer = await api.post(_PATH, body)
    allowed = bool((answer.get("status") or {}).get("allowed"))
    missing_resource = resource if resource == "configmaps" else right.resource
    missing = MissingRight(user, right.verb, missing_resource, right.group, right.namespace)
    return Review(user, right.verb, missing.full, allowed, "" if allowed else grant(missing))


def unread_error(error: ClientError) -> UnreadError:
    """Return a failed request as the reason of the checks that need it."""
    right = missing_right(str(error))
    text = error.brief if right is None else describe_missing(right)
    message, _, command = text.partition(GRANTED)
    return UnreadError(message, command.rstrip("`"), status=error.status)
