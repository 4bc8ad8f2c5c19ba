"""The pages of the demo's API server: version, health, discovery, OpenAPI, and reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from adapter.demo.cluster.nodes import RELEASE
from adapter.demo.cluster.upstream import GROUPS, USER, Upstream
from apiservice.documents.aggregateddiscovery import (
    aggregated_document,
    media_type,
    wants_aggregated,
)
from apiservice.documents.discovery import view_resources
from apiservice.errors import ApiError, BadRequest, MethodNotAllowed, RouteNotFound
from apiservice.view.resource import ViewGroup
from apiservice.wire.accept import Form, accept_header

Json = dict[str, Any]
_BODY: Final = 1 << 16
"""Bytes of a review."""
_AUTHORIZATION: Final = "authorization.k8s.io"
_AUTHENTICATION: Final = "authentication.k8s.io"
_REVIEWS: Final = {
    _AUTHORIZATION: {
        "selfsubjectaccessreviews": "SelfSubjectAccessReview",
        "subjectaccessreviews": "SubjectAccessReview",
    },
    _AUTHENTICATION: {"selfsubjectreviews": "SelfSubjectReview"},
}
"""Group -> resource -> kind of what is answered and not kept."""
_READS: Final = ("get", "list")
_json = msgspec.json.Encoder().encode


class Documents:
    """Discovery of the simulation's groups and of those of ``serve``."""

    def __init__(self, groups: Sequence[ViewGroup], upstream: Upstream) -> None:
        self._upstream = upstream
        self._resources: dict[tuple[str, str], list[Json]] = {
            (group.group, group.version): view_resources(group.views) for group in groups
        }
        for name, kinds in _REVIEWS.items():
            self._resources[name, "v1"] = [_review(*row) for row in kinds.items()]
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"]}
        self._resources["apps", "v1"].append(
            {"name": "deployments/scale", "singularName": "", "namespaced": True, **scale}
        )

    def may_read(self, group: str, resource: str) -> bool:
        """Return whether the demo's user may read a resource: each that is served here."""
        names = {
            row["name"]
            for (name, _), rows in self._resources.items()
            if name == group
            for row in rows
        }
        return resource in names or group not in {name for name, _ in self._resources}

    async def api(self, form: Form | None) -> Json:
        """Return ``/api``."""
        if form is not None:
            return aggregated_document(form, [("", [("v1", self._resources["", "v1"])])])
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}

    async def apis(self, form: Form | None) -> Json:
        """Return ``/apis``: the own groups, then those of ``serve``."""
        keys = [(name, version) for name, version in self._resources if name]
        if form is not None:
            served = await self._upstream.json("/apis", media_type(form))
            rows = [(name, [(version, self._resources[name, version])]) for name, version in keys]
            mine = aggregated_document(form, rows)
            return {**mine, "items": [*mine["items"], *(served.get("items") or ())]}
        served = await self._upstream.json("/apis")
        groups = [_group(*key) for key in keys]
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [*groups, *(served.get("groups") or ())],
        }

    def group(self, name: str) -> Json | None:
        """Return an own group."""
        versions = [version for group, version in self._resources if group == name]
        return (
            {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions[0])}
            if (versions)
            else None
        )

    def resources(self, group: str, version: str) -> Json | None:
        """Return the resources of an own group-version."""
        rows = self._resources.get((group, version))
        if rows is None:
            return None
        name = f"{group}/{version}".lstrip("/")
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": name,
            "resources": rows,
        }


class UnsupportedTypeError(ApiError, code=415, reason="UnsupportedMediaType"):
    """A review in another form than JSON, such as the protobuf of ``kubectl auth can-i``."""

    def __init__(self) -> None:
        super().__init__("the demo reads reviews as application/json only")


def create_documents(documents: Documents) -> FastAPI:
    """Return the application. What it does not have is forwarded before it is asked."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    major, minor = RELEASE.removeprefix("v").split(".")[:2]
    version = {"major": major, "minor": minor, "gitVersion": f"{RELEASE}-demo"}

    @app.get("/version")
    async def show_version() -> Response:
        return _answer(version)

    @app.get("/healthz")
    @app.get("/livez")
    @app.get("/readyz")
    async def health() -> Response:
        return Response("ok", media_type="text/plain")

    @app.get("/api")
    async def api(request: Request) -> Response:
        return _answer_discovery(await documents.api(form := _form(request)), form)

    @app.get("/apis")
    async def apis(request: Request) -> Response:
        return _answer_discovery(await documents.apis(form := _form(request)), form)

    @app.get("/api/{version}")
    async def core(version: str) -> Response:
        return _answer_existing(documents.resources("", version))

    @app.get("/apis/{group}")
    async def group(group: str) -> Response:
        return _answer_existing(documents.group(group))

    @app.get("/apis/{group}/{version}")
    async def resources(group: str, version: str) -> Response:
        return _answer_existing(documents.resources(group, version))

    _add_reviews(app, documents)
    _add_errors(app)
    return app


def _add_reviews(app: FastAPI, documents: Documents) -> None:
    @app.post(f"/apis/{_AUTHORIZATION}/v1/{{plural}}")
    async def review_access(plural: str, request: Request) -> Response:
        kind = _REVIEWS[_AUTHORIZATION].get(plural)
        if kind is None:
            raise RouteNotFound
        return _answer(_review_access(documents, kind, await _body(request)), 201)

    @app.post(f"/apis/{_AUTHENTICATION}/v1/selfsubjectreviews")
    async def review_self() -> Response:
        user = {"username": USER, "groups": list(GROUPS)}
        return _answer(
            {
                "apiVersion": f"{_AUTHENTICATION}/v1",
                "kind": "SelfSubjectReview",
                "metadata": {"creationTimestamp": None},
                "status": {"userInfo": user},
            },
            201,
        )


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)  # noqa: S101 - registered for it
        return _status(error)

    @app.exception_handler(HTTPException)
    async def refuse_route(request: Request, error: Exception) -> Response:
        wrong = isinstance(error, HTTPException) and error.status_code == 405
        return _status(MethodNotAllowed() if wrong else RouteNotFound())


def _status(error: ApiError) -> Response:
    return Response(error.body(), error.code, media_type="application/json")


def _review_access(documents: Documents, kind: str, body: Json) -> Json:
    head = {
        "apiVersion": f"{_AUTHORIZATION}/v1",
        "kind": kind,
        "metadata": {"creationTimestamp": None},
    }
    spec = body.get("spec")
    wanted = spec.get("resourceAttributes") if isinstance(spec, dict) else None
    wanted = wanted if isinstance(wanted, dict) else {}
    reads = wanted.get("verb") in _READS
    allowed = reads and documents.may_read(
        str(wanted.get("group") or ""), str(wanted.get("resource") or "")
    )
    status: Json = {"allowed": allowed}
    if not allowed:
        status["reason"] = "the demo is read-only"
    return {**head, "spec": spec, "status": status}


async def _body(request: Request) -> Json:
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip() != "application/json":
        raise UnsupportedTypeError
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _BODY:
            raise BadRequest(f"the review is larger than {_BODY} bytes")
    try:
        review: Json = msgspec.json.decode(content or b"{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        text = f"the review is not JSON: {error}"
        raise BadRequest(text) from error
    return review


def _form(request: Request) -> Form | None:
    return wants_aggregated(accept_header(request.scope["headers"]))


def _answer_discovery(document: Json, form: Form | None) -> Response:
    kind = "application/json" if form is None else media_type(form)
    return Response(_json(document), media_type=kind)


def _answer_existing(document: Json | None) -> Response:
    if document is None:
        raise RouteNotFound
    return _answer(document)


def _answer(document: Json, code: int = 200) -> Response:
    return Response(_json(document), code, media_type="application/json")


def _group(name: str, version: str) -> Json:
    entry = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [entry], "preferredVersion": entry}


def _review(plural: str, kind: str) -> Json:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": False,
        "kind": kind,
        "verbs": ["create"],
    }
