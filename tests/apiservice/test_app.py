"""What each path answers, to whom, and in which order: the whole application."""

from __future__ import annotations

import httpx
import msgspec
import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from apiservice.errors import Internal, Unavailable
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.wire.routes import query_parameters
from tests.apiservice.world import World

CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
PODS = f"{CUSTOM}/v1beta2/namespaces/ns/pods"
UTILIZATION = f"{PODS}/%2A/gpu_utilization"

_LIST_V1BETA2 = (
    b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2",'
    b'"metadata":{},"items":['
)
_P0 = (
    b'{"describedObject":{"kind":"Pod","namespace":"ns","name":"p0","apiVersion":"v1"},'
    b'"metric":{"name":"gpu_utilization","selector":null},'
    b'"timestamp":"2026-01-02T03:04:05Z","windowSeconds":30,"value":"87500m"}'
)
_P1 = _P0.replace(b'"p0"', b'"p1"').replace(b'"87500m"', b'"0"')
_STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
_NO_ROUTE = (
    _STATUS + b'"message":"the server could not find the requested resource",'
    b'"reason":"NotFound","details":{},"code":404}'
)
_NO_METHOD = (
    _STATUS + b'"message":"the server does not allow this method on the requested resource",'
    b'"reason":"MethodNotAllowed","details":{},"code":405}'
)
_NO_JSON = (
    _STATUS + b'"message":"only the following media types are accepted: application/json",'
    b'"reason":"NotAcceptable","code":406}'
)

ANSWERS: dict[str, tuple[str, int, bytes]] = {
    "all pods": (UTILIZATION, 200, _LIST_V1BETA2 + _P0 + b"," + _P1 + b"]}"),
    "selected pods": (
        f"{UTILIZATION}?labelSelector=app%3Dinf",
        200,
        _LIST_V1BETA2 + _P0 + b"]}",
    ),
    "no pod selected": (f"{UTILIZATION}?labelSelector=app%3Dnone", 200, _LIST_V1BETA2 + b"]}"),
    "one pod": (f"{PODS}/p0/gpu_utilization", 200, _LIST_V1BETA2 + _P0 + b"]}"),
    "with a trailing slash": (f"{PODS}/p0/gpu_utilization/", 200, _LIST_V1BETA2 + _P0 + b"]}"),
    "v1beta1": (
        f"{CUSTOM}/v1beta1/namespaces/ns/pods/p0/gpu_utilization",
        200,
        (
            b'{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},'
            b'"items":[{"describedObject":{"kind":"Pod","namespace":"ns","name":"p0",'
            b'"apiVersion":"v1"},"metricName":"gpu_utilization","timestamp":"2026-01-02T03:04:05Z",'
            b'"window":30,"value":"87500m","selector":null}]}'
        ),
    ),
    "metric selector": (
        f"{PODS}/p0/gpu_utilization?metricLabelSelector=model%3DA100",
        200,
        _LIST_V1BETA2
        + _P0.replace(b'"selector":null', b'"selector":{"matchLabels":{"model":"A100"}}')
        + b"]}",
    ),
    "about a namespace": (
        f"{CUSTOM}/v1beta2/namespaces/ns/metrics/gpu_utilization",
        200,
        _LIST_V1BETA2
        + b'{"describedObject":{"kind":"Namespace","name":"ns","apiVersion":"v1"},'
        + b'"metric":{"name":"gpu_utilization","selector":null},'
        + b'"timestamp":"2026-01-02T03:04:05Z","windowSeconds":30,"value":"43750m"}]}',
    ),
    "about a node": (
        f"{CUSTOM}/v1beta2/nodes/n1/gpu_utilization",
        200,
        _LIST_V1BETA2
        + b'{"describedObject":{"kind":"Node","name":"n1","apiVersion":"v1"},'
        + b'"metric":{"name":"gpu_utilization","selector":null},'
        + b'"timestamp":"2026-01-02T03:04:05Z","windowSeconds":30,"value":"50"}]}',
    ),
    "external": (
        f"{EXTERNAL}/namespaces/ns/gpu_queue?labelSelector=queue%3Da",
        200,
        (
            b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1",'
            b'"metadata":{},"items":[{"metricName":"gpu_queue","metricLabels":{"queue":"a"},'
            b'"timestamp":"2026-01-02T03:04:05Z","window":30,"value":"42"}]}'
        ),
    ),
    "external, no series": (
        f"{EXTERNAL}/namespaces/ns/gpu_queue?labelSelector=queue%3Db",
        200,
        (
            b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1",'
            b'"metadata":{},"items":[]}'
        ),
    ),
    "unknown metric": (
        f"{PODS}/%2A/nothing",
        404,
        _STATUS + b'"message":"the server could not find the metric nothing for pods",'
        b'"reason":"NotFound","code":404}',
    ),
    "unknown pod": (
        f"{PODS}/p9/gpu_utilization",
        404,
        _STATUS + b'"message":"the server could not find the metric gpu_utilization for pods p9",'
        b'"reason":"NotFound","code":404}',
    ),
    "a namespace and nothing useful": (
        f"{CUSTOM}/v1beta2/namespaces/ns/pods",
        400,
        _STATUS + b'"message":"invalid request path","reason":"BadRequest","code":400}',
    ),
    "bad metric selector": (
        f"{UTILIZATION}?metricLabelSelector=a%3D%3D%3D",
        400,
        _STATUS + b'"message":"unable to parse metricLabelSelector: '
        b"found '=' at character 3, expected: identifier\","
        b'"reason":"BadRequest","code":400}',
    ),
    "external watch": (
        f"{EXTERNAL}/namespaces/ns/gpu_queue?watch=true",
        405,
        _STATUS + rb'"message":"watch is not supported on resources of kind '
        rb'\"*.external.metrics.k8s.io\"","reason":"MethodNotAllowed",'
        rb'"details":{"group":"external.metrics.k8s.io","kind":"*"},"code":405}',
    ),
    "unknown group": ("/apis/nope.k8s.io", 404, _NO_ROUTE),
    "unknown version": (f"{CUSTOM}/v1", 404, _NO_ROUTE),
    "below an unknown version": (f"{CUSTOM}/v1/namespaces/ns/pods/p0/m", 404, _NO_ROUTE),
    "no such depth": (f"{PODS}/p0/gpu_utilization/more", 404, _NO_ROUTE),
}


@pytest.mark.parametrize(("path", "code", "body"), ANSWERS.values(), ids=ANSWERS)
async def test_a_path_answers(world: World, path: str, code: int, body: bytes) -> None:
    for _ in ("first", "again, from what was prepared"):
        response = await world.get(path, accept="application/vnd.kubernetes.protobuf, */*")
        assert (response.status_code, response.content) == (code, body)
        assert response.headers["content-type"] == "application/json"
        assert "retry-after" not in response.headers


async def test_what_was_prepared_is_repeated_until_the_data_changes(world: World) -> None:
    first = await world.get(UTILIZATION)
    world.custom.values_by_name["p0"] = 12_000
    assert (await world.get(UTILIZATION)).content == first.content
    assert len(world.custom.queries) == 1
    world.custom.version += 1
    assert b'"value":"12"' in (await world.get(UTILIZATION)).content
    assert len(world.custom.queries) == 2


async def test_what_was_prepared_ends_with_its_age(world: World) -> None:
    world.custom.expires = world.clock.now + 10
    await world.get(UTILIZATION)
    world.clock.now += 9.9
    await world.get(UTILIZATION)
    assert len(world.custom.queries) == 1
    world.clock.now += 0.1
    await world.get(UTILIZATION)
    assert len(world.custom.queries) == 2


@pytest.mark.parametrize(
    "path", [UTILIZATION, "/apis", f"{CUSTOM}/v1beta2", "/version", "/openapi/v2"]
)
async def test_a_client_that_takes_no_json_gets_406(world: World, path: str) -> None:
    for _ in ("first", "again"):
        response = await world.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert (response.status_code, response.content) == (406, _NO_JSON)
        await world.get(path)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW"])
@pytest.mark.parametrize("path", [UTILIZATION, f"{EXTERNAL}/namespaces/ns/gpu_queue", "/apis"])
async def test_metrics_and_discovery_are_read_with_get_only(
    world: World, method: str, path: str
) -> None:
    await world.get(path)
    response = await world.client.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
    assert response.content == (b"" if method == "HEAD" else _NO_METHOD)


_FORBIDDEN = (
    _STATUS + rb'"message":"pods.custom.metrics.k8s.io \"*\" is forbidden: User \"u\" cannot get '
    rb"resource \"pods/gpu_utilization\" in API group \"custom.metrics.k8s.io\" in the namespace "
    rb'\"ns\"","reason":"Forbidden",'
    rb'"details":{"name":"*","group":"custom.metrics.k8s.io","kind":"pods"},"code":403}'
)


async def test_a_user_without_the_right_is_refused_before_and_after_others_were_served(
    world: World,
) -> None:
    assert (await world.get(UTILIZATION, x_user="u")).content == _FORBIDDEN
    assert (await world.get(UTILIZATION)).status_code == 200
    response = await world.get(UTILIZATION, x_user="u")
    assert (response.status_code, response.content) == (403, _FORBIDDEN)


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        (f"{PODS}/p0/gpu_utilization", f"{PODS}/p0/nothing"),
        (f"{PODS}/p0/gpu_utilization", f"{PODS}/p9/gpu_utilization"),
        (f"{EXTERNAL}/namespaces/ns/gpu_queue", f"{EXTERNAL}/namespaces/ns/nothing"),
        (f"{UTILIZATION}?labelSelector=a", f"{UTILIZATION}?labelSelector=a%3D%3D%3D"),
        (f"{UTILIZATION}", f"{CUSTOM}/v9/namespaces/ns/pods/%2A/gpu_utilization"),
    ],
    ids=["metric", "pod", "external metric", "selector that does not parse", "version"],
)
async def test_a_refusal_says_nothing_about_what_exists(
    world: World, known: str, unknown: str
) -> None:
    """The two answers differ by the names that the client sent, and by nothing else."""
    one, other = await world.get(known, x_user="u"), await world.get(unknown, x_user="u")
    assert one.status_code == other.status_code == 403

    def anonymous(response: httpx.Response) -> str:
        return response.text.replace("gpu_queue", "X").replace("gpu_utilization", "X")

    masked = other.text.replace("nothing", "X").replace("gpu_utilization", "X").replace("p9", "p0")
    assert masked == anonymous(one)
    assert not world.custom.queries
    assert not world.external.queries


@pytest.mark.parametrize(
    ("method", "accept"), [("POST", "*/*"), ("GET", "text/html")], ids=["method", "media type"]
)
async def test_the_right_comes_before_method_and_media_type(
    world: World, method: str, accept: str
) -> None:
    headers = {"x-user": "u", "accept": accept}
    response = await world.client.request(method, UTILIZATION, headers=headers)
    assert response.status_code == 403


async def test_a_query_of_very_many_parameters_is_refused_after_the_right(world: World) -> None:
    """Of 8,000, only the first hundred are read: all of them took 10 ms, also of a stranger."""
    query = "&".join(f"{n:x}" for n in range(3_000))
    assert len(query_parameters(query.encode())) == 100
    path = f"{PODS}/p0/gpu_utilization?{query}"
    assert (await world.get(path, x_user="u")).status_code == 403
    refused = await world.get(path)
    assert refused.status_code == 400
    assert "more than 100 parameters" in refused.json()["message"]
    allowed = "&".join(f"{n:x}" for n in range(100))
    assert (await world.get(f"{PODS}/p0/gpu_utilization?{allowed}")).status_code == 200


@pytest.mark.parametrize("path", [UTILIZATION, "/apis", "/metrics", "/nope", "/readyz/ping"])
async def test_a_bad_credential_is_401_everywhere(world: World, path: str) -> None:
    response = await world.get(path, x_user="broken")
    assert response.status_code == 401
    assert response.content == (
        _STATUS + b'"message":"Unauthorized","reason":"Unauthorized","code":401}'
    )


async def test_an_authorizer_that_fails_is_500_and_never_an_allow(world: World) -> None:
    world.authorizer.failure = Internal("no answer from the API server")
    for path in (UTILIZATION, "/apis", "/metrics"):
        response = await world.get(path)
        assert response.status_code == 500
        assert response.content == (
            _STATUS + b'"message":"Internal error occurred: no answer from the API server",'
            b'"reason":"InternalError",'
            b'"details":{"causes":[{"message":"no answer from the API server"}]},"code":500}'
        )
    assert not world.custom.queries


async def test_an_authorizer_that_breaks_is_500_and_never_an_allow(world: World) -> None:
    world.authorizer.failure = RuntimeError("bug")
    with capture_logs():
        assert (await world.get(UTILIZATION)).status_code == 500
    assert not world.custom.queries


async def test_a_decision_that_needs_no_waiting_is_not_asked_for(world: World) -> None:
    user = User("hpa", groups=("system:authenticated",))
    wanted = Attributes("get", path="/metrics")
    world.authorizer.known[user, wanted] = AccessDecision(allowed=True)
    assert (await world.get("/metrics")).status_code == 200
    assert not world.authorizer.asked


async def test_the_refusers_reason_is_shown(world: World) -> None:
    world.authorizer.reason = "no rule"
    response = await world.get("/metrics", x_user="u")
    assert response.json()["message"] == ('forbidden: User "u" cannot get path "/metrics": no rule')


async def test_health_is_open_to_all_and_its_checks_are_not(world: World) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz?verbose"):
        assert (await world.get(path, x_user="u")).status_code == 200
        assert (await world.client.head(path, headers={"x-user": "u"})).status_code == 200
    for path in ("/readyz/ping", "/readyz/", "/metrics", "/", "/version", "/apis", "/openapi/v2"):
        assert (await world.get(path, x_user="u")).status_code == 403
    assert (await world.client.post("/healthz", headers={"x-user": "u"})).status_code == 403


async def test_a_provider_that_breaks_is_500_logged_and_the_next_request_works(
    world: World,
) -> None:
    world.custom.failure = RuntimeError("boom")
    with capture_logs() as logs:
        response = await world.get(UTILIZATION)
    assert response.status_code == 500
    assert response.json()["message"] == "Internal error occurred: boom"
    (entry,) = logs
    assert entry["event"] == "request failed"
    assert entry["exc_info"] is world.custom.failure
    world.custom.failure = None
    assert (await world.get(UTILIZATION)).status_code == 200


async def test_a_provider_without_data_is_503_with_the_reason(world: World) -> None:
    world.custom.failure = Unavailable("no exporter was read yet")
    response = await world.get(UTILIZATION)
    assert (response.status_code, response.json()["message"]) == (503, "no exporter was read yet")
    assert "retry-after" not in response.headers


async def test_a_broken_page_is_500_and_logged(world: World) -> None:
    world.external.failure = RuntimeError("boom")
    with capture_logs() as logs:
        response = await world.get(EXTERNAL)
    assert response.status_code == 500
    assert response.json()["message"] == "Internal error occurred: boom"
    assert [entry["event"] for entry in logs] == ["request failed"]


async def test_the_index_lists_what_is_there(world: World) -> None:
    for path, code in (("/", 200), ("/nope", 404), ("/readyz/nope", 404), ("/openapi/v3/x", 404)):
        response = await world.get(path)
        assert response.status_code == code
        assert response.content == (
            b'{"paths":["/apis","/apis/custom.metrics.k8s.io",'
            b'"/apis/custom.metrics.k8s.io/v1beta1","/apis/custom.metrics.k8s.io/v1beta2",'
            b'"/apis/external.metrics.k8s.io","/apis/external.metrics.k8s.io/v1beta1",'
            b'"/healthz","/healthz/ping","/livez","/livez/ping","/metrics","/openapi/v2",'
            b'"/openapi/v3","/openapi/v3/apis/custom.metrics.k8s.io/v1beta1",'
            b'"/openapi/v3/apis/custom.metrics.k8s.io/v1beta2",'
            b'"/openapi/v3/apis/external.metrics.k8s.io/v1beta1","/readyz","/readyz/ping",'
            b'"/version"]}'
        )


async def test_version_has_every_key_of_a_kubernetes_version(world: World) -> None:
    shown = (await world.get("/version")).json()
    assert set(shown) == {
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    }
    assert (shown["major"], shown["minor"], shown["gitVersion"]) == ("0", "1", "v0.1.0")


async def test_requests_are_counted_by_route_and_never_by_what_was_sent(world: World) -> None:
    for _ in range(3):
        await world.get(UTILIZATION)
    await world.get(f"{PODS}/%2A/secret_name")
    await world.get("/secret_path")
    await world.get("/apis/secret.group/v1/a/b")
    text = (await world.get("/metrics")).text
    assert 'gma_http_requests_total{code="200",route="custom",version="v1beta2"} 3.0' in text
    assert 'gma_http_requests_total{code="404",route="custom",version="v1beta2"} 1.0' in text
    assert 'gma_http_requests_total{code="404",route="other",version=""} 2.0' in text
    assert 'gma_http_request_duration_seconds_count{route="custom",version="v1beta2"} 4.0' in text
    assert "secret" not in text


async def test_a_websocket_is_closed(world: World) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await world.app({"type": "websocket", "path": "/", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_every_list_that_is_served_decodes(world: World) -> None:
    body = (await world.get(UTILIZATION)).content
    assert [item["value"] for item in msgspec.json.decode(body)["items"]] == ["87500m", "0"]
