"""Read access to a cluster with the caller's kubeconfig."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from adapter import __version__
from adapter.tools.client.errors import (
    VIEW,
    ClientError,
    describe_missing,
    describe_missing_view,
    describe_silent_view,
    missing_right,
)
from adapter.tools.client.impersonation import NOBODY, Impersonation
from adapter.tools.client.tables import TABLE_TYPE, ObjectTable, TableRow, decode_table
from apiservice.kube.client import (
    BoundedAnswer,
    ClusterAnswerError,
    call,
    read_bounded,
    server_time,
)
from apiservice.kube.connection import connect
from apiservice.kube.failures import NOT_AN_API_SERVER, ClusterError, describe_failure
from apiservice.kube.pages import EndlessListError, Pages
from apiservice.runtime.jsontext import UNREADABLE

Json = dict[str, Any]

TIMEOUT: Final = 15.0
"""Seconds for one request."""
_PAGE: Final = 500
_LABELS: Final = "labelSelector"
_RIGHTS: Final = "; docs/rights.md lists the rights of each command"
_SILENT: Final = (502, 503, 504)
"""What the API server answers if the server of a registered API does not."""
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _ListMeta(msgspec.Struct):
    token: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMeta | None = None


_pages = msgspec.json.Decoder(_Page)


class Api:
    """One cluster. Each method raises ClientError."""

    def __init__(self, client: Any, namespace: str = "") -> None:
        self._client = client
        self.namespace: str = namespace or client.namespace
        """The namespace that was named, or the context's."""
        self.origin: str = client.origin
        """The server, and the kubeconfig and context that name it."""

    def within(self, namespace: str) -> Api:
        """Return the same cluster with another namespace."""
        return Api(self._client, namespace)

    @property
    def server(self) -> str:
        """The server's address."""
        return str(self._client.configuration.host)

    @property
    def context(self) -> str:
        """The context of the kubeconfig; empty in a pod."""
        return str(self._client.context)

    async def get(self, path: str) -> Json:
        """Return the JSON object of a path."""
        return await self._send("GET", path)

    async def list(self, path: str, *, labels: str = "", fields: str = "") -> list[Json]:
        """Return every object of a collection, read in pages.

        Args:
            labels: a label selector.
            fields: a field selector.
        """
        items: list[Json] = []
        async for rows in self.pages(path, labels=labels, fields=fields):
            items += [row for row in rows if isinstance(row, dict)]
        return items

    async def pages(
        self, path: str, *, labels: str = "", fields: str = ""
    ) -> AsyncIterator[Sequence[Any]]:
        """Yield the items of a collection page by page; the arguments are those of :meth:`list`."""
        async for texts in self.texts(path, labels=labels, fields=fields):
            try:
                rows = [msgspec.json.decode(text) for text in texts]
            except UNREADABLE as error:
                raise self._garbled_error(path, str(error)) from None
            yield rows

    async def texts(
        self, path: str, *, labels: str = "", fields: str = ""
    ) -> AsyncIterator[Sequence[msgspec.Raw]]:
        """Yield the texts of a collection's items, page by page: a large one is decoded into what
        is kept of it (:func:`adapter.pipeline.cluster.objects.decode`)."""
        pages = Pages()
        query = _query(labels, fields)
        while True:
            body = await self._fetch("GET", f"{path}?{urlencode(query)}")
            try:
                page = _pages.decode(body)
            except UNREADABLE as error:
                raise self._garbled_error(path, str(error)) from None
            items, token = page.items or (), page.metadata.token if page.metadata else None
            yield items
            if not self._continues(path, pages, token or "", items):
                return
            query["continue"] = token or ""

    async def table(self, path: str, *, labels: str = "", numbers: bool = False) -> ObjectTable:
        """Return a collection as the table that kubectl prints, with all wide columns.

        Args:
            labels: a label selector.
            numbers: of the view API: with a column of each number that a text is written from. A
                server of an older release ignores it.
        """
        rows: list[TableRow] = []
        pages = Pages()
        query = {**_query(labels), "includeObject": "Metadata"}
        if numbers:
            query["numbers"] = "true"
        while True:
            body = await self._fetch("GET", f"{path}?{urlencode(query)}", accept=TABLE_TYPE)
            try:
                page = decode_table(body)
            except UNREADABLE as error:
                raise self._garbled_error(path, str(error)) from None
            rows += page.rows
            if not self._continues(path, pages, page.token, page.rows):
                return ObjectTable(page.columns, rows)
            query["continue"] = page.token

    def _continues(self, path: str, pages: Pages, token: str, rows: Sequence[Any]) -> bool:
        try:
            return pages.more(token, rows)
        except EndlessListError as error:
            raise self._garbled_error(path, str(error)) from None

    async def can(self, verb: str, group: str, resource: str, namespace: str = "") -> bool:
        """Return whether the caller has a right; ``namespace`` is empty for the whole cluster."""
        resource, _, subresource = resource.partition("/")
        attributes = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._send("POST", _REVIEWS, body)
        return bool((answer.get("status") or {}).get("allowed"))

    async def user(self) -> str:
        """Return the caller's user name as the API server sees it; needs Kubernetes 1.28."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await self._send("POST", _WHO, body)
        about = (answer.get("status") or {}).get("userInfo") or {}
        return str(about.get("username") or "")

    async def post(self, path: str, body: Json) -> Json:
        """Create an object that is only answered, such as a review, and return it."""
        return await self._send("POST", path, body)

    async def page(self, path: str, most: int) -> BoundedAnswer:
        """Return what a pod or a Service answers through the API server's proxy.

        Args:
            path: of the proxy, such as ``/api/v1/namespaces/a/pods/b:9400/proxy/metrics``.
            most: bytes that are read.
        """
        try:
            return await read_bounded(self._client, path, most, TIMEOUT)
        except ClusterAnswerError as error:
            raise ClientError(describe_failure(self._client, error), error.status) from None

    async def clock(self) -> float:
        """Return the API server's clock in epoch seconds."""
        try:
            return await server_time(self._client, TIMEOUT)
        except ClusterAnswerError as error:
            raise ClientError(describe_failure(self._client, error), error.status) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, method: str, path: str, body: Any = None) -> Json:
        answer = await self._fetch(method, path, body)
        try:
            content: Json = msgspec.json.decode(answer, type=dict[str, Any])
        except UNREADABLE as error:
            raise self._garbled_error(path, str(error)) from None
        return content

    async def _fetch(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json"
    ) -> bytes:
        try:
            return await call(self._client, method, path, body, TIMEOUT, accept=accept)
        except ClusterAnswerError as error:
            raise self._request_error(path, error) from None

    def _request_error(self, path: str, error: ClusterAnswerError) -> ClientError:
        origin = f"; server: {self.origin}"
        text = describe_failure(self._client, error)
        if error.status == 403 and (right := missing_right(str(error))):
            text = f"{describe_missing(right)}{origin}{_RIGHTS}"
        elif error.status == 400 and (labels := parse_qs(urlsplit(path).query).get(_LABELS)):
            fix = f"correct the label selector {labels[0]!r}, such as app=llm or 'app in (a, b)'"
            text = f"{error}{origin}; {fix}"
        elif path.startswith(VIEW) and error.status in _SILENT:
            text = describe_silent_view(error.cause.strip()) + origin
        elif path.startswith(VIEW) and _is_unserved(error):
            text = describe_missing_view(error.cause.strip()) + origin
        answer = error.cause.removeprefix(f"{error.status} ") if error.status else ""
        return ClientError(text, error.status, error.reason, answer)

    def _garbled_error(self, path: str, why: str) -> ClientError:
        wrong = ClusterAnswerError(f"GET {path}: {NOT_AN_API_SERVER}: {why}")
        return ClientError(describe_failure(self._client, wrong))


def _query(labels: str, fields: str = "") -> dict[str, str]:
    """Return the query of a list's first page."""
    query = {"limit": str(_PAGE)}
    if labels:
        query[_LABELS] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def _is_unserved(error: ClusterAnswerError) -> bool:
    """Return whether the whole API is missing, rather than one object."""
    text = error.cause
    return error.status == 404 and ("requested resource" in text or "page not found" in text)


async def open_cluster(
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str = "",
    identity: Impersonation = NOBODY,
) -> Api:
    """Return the cluster of a kubeconfig, or of the pod, to be closed. Nothing has been sent yet.

    Raises:
        ClientError: the kubeconfig cannot be used.
    """
    try:
        client: Any = await connect(
            kubeconfig,
            context,
            user_agent=f"gpu-metrics-adapter-client/{__version__}",
            headers=identity.headers,
        )
    except ClusterError as error:
        raise ClientError(str(error)) from None
    client.origin += f", as {identity.user}" if identity.user else ""
    return Api(client, namespace)


@asynccontextmanager
async def cluster(
    kubeconfig: Path | None = None,
    context: str | None = None,
    namespace: str = "",
    identity: Impersonation = NOBODY,
) -> AsyncIterator[Api]:
    """Connect to a cluster while the block runs; see :func:`open_cluster`."""
    api = await open_cluster(kubeconfig, context, namespace, identity)
    try:
        yield api
    finally:
        await api.close()
