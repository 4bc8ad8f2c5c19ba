"""TokenReview and SubjectAccessReview as requests to an API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiservice.auth.reviews import KubernetesReviews, access_spec
from apiservice.auth.tokens import ReviewError
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.kube.clusterclient import ClusterClient
from tests.apiservice.kubeapi import FakeApiServer

TOKEN_ANSWERS: dict[str, tuple[dict[str, Any], tuple[str, ...], User | None]] = {
    "authenticated": (
        {
            "authenticated": True,
            "user": {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}},
        },
        (),
        User("u", "1", ("g",), {"k": ("v",)}),
    ),
    "not authenticated": ({"error": "bad"}, (), None),
    "authenticated as nobody": ({"authenticated": True, "user": {}}, (), None),
    "for one of our audiences": (
        {"authenticated": True, "user": {"username": "u"}, "audiences": ["a", "x"]},
        ("a", "b"),
        User("u"),
    ),
    "for another audience": (
        {"authenticated": True, "user": {"username": "u"}, "audiences": ["x"]},
        ("a",),
        None,
    ),
    "by a server that knows no audiences": (
        {"authenticated": True, "user": {"username": "u"}},
        ("a",),
        None,
    ),
}


@pytest.mark.parametrize(
    ("status", "audiences", "user"), TOKEN_ANSWERS.values(), ids=TOKEN_ANSWERS.keys()
)
async def test_token_review(
    client: ClusterClient,
    api: FakeApiServer,
    status: dict[str, Any],
    audiences: tuple[str, ...],
    user: User | None,
) -> None:
    api.answers = [(201, json.dumps({"status": status}).encode())]

    assert await KubernetesReviews(client, audiences).review_token("secret") == user
    assert api.asked[0][:2] == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")


ACCESS_ANSWERS: dict[str, tuple[dict[str, Any], AccessDecision]] = {
    "allowed": ({"allowed": True, "reason": "RBAC"}, AccessDecision(True, "RBAC")),
    "no opinion": ({"allowed": False}, AccessDecision(False)),
    "allowed and denied": ({"allowed": True, "denied": True}, AccessDecision(False)),
}


@pytest.mark.parametrize(("status", "decision"), ACCESS_ANSWERS.values(), ids=ACCESS_ANSWERS.keys())
async def test_access_review(
    client: ClusterClient, api: FakeApiServer, status: dict[str, Any], decision: AccessDecision
) -> None:
    api.answers = [(201, json.dumps({"status": status}).encode())]

    reviews = KubernetesReviews(client)
    assert await reviews.review_access(User("u"), Attributes("get", path="/x")) == decision
    assert api.asked[0][1] == "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def test_a_passing_failure_is_asked_again(client: ClusterClient, api: FakeApiServer) -> None:
    good = b'{"status":{"allowed":true}}'
    api.answers = [(503, b"{}"), (201, good)]

    decision = await KubernetesReviews(client).review_access(User("u"), Attributes("get"))

    assert decision.allowed
    assert len(api.asked) == 2


ERRORS: dict[str, tuple[int, bytes, str]] = {
    "forbidden": (403, b'{"message":"no"}', "system:auth-delegator"),
    "credentials refused": (401, b'{"message":"Unauthorized"}', "system:auth-delegator"),
    "HTML": (200, b"<html>", "not a response of an API server"),
    "no status": (201, b'{"kind":"SubjectAccessReview"}', "not a response"),
    "a status without a decision": (201, b'{"status":{}}', "not a response"),
    "a decision that is not a boolean": (201, b'{"status":{"allowed":"yes"}}', "not a response"),
}


@pytest.mark.parametrize(("code", "body", "why"), ERRORS.values(), ids=ERRORS.keys())
async def test_no_answer_is_an_error_never_a_decision(
    client: ClusterClient, api: FakeApiServer, code: int, body: bytes, why: str
) -> None:
    api.answers = [(code, body)]
    reviews = KubernetesReviews(client)

    with pytest.raises(ReviewError, match=why):
        await reviews.review_access(User("u"), Attributes("get"))
    assert reviews.asked["access", "error"] == 1


SPECS: dict[str, tuple[User, Attributes, dict[str, Any]]] = {
    "a resource": (
        User("u", "1", ("g",), {"k": ("v",)}),
        Attributes("get", "custom.metrics.k8s.io", "v1beta2", "pods", "m", "*", "ns"),
        {
            "user": "u",
            "uid": "1",
            "groups": ["g"],
            "extra": {"k": ["v"]},
            "resourceAttributes": {
                "namespace": "ns",
                "verb": "get",
                "group": "custom.metrics.k8s.io",
                "version": "v1beta2",
                "resource": "pods",
                "subresource": "m",
                "name": "*",
            },
        },
    ),
    "a path": (
        User("u"),
        Attributes("get", path="/metrics"),
        {"user": "u", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
    ),
}


@pytest.mark.parametrize(("user", "wanted", "spec"), SPECS.values(), ids=SPECS.keys())
def test_access_spec(user: User, wanted: Attributes, spec: dict[str, Any]) -> None:
    assert access_spec(user, wanted) == spec
