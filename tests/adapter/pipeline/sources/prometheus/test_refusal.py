"""Messages for error statuses and bodies without an answer."""

from __future__ import annotations

import pytest

from adapter.pipeline.sources.prometheus.refusal import refusal, withhold_secrets

TOKEN = "ya29." + "A" * 120
# Status, body, reason, text in the message, text not in the message.
REFUSALS = {
    "Prometheus, a wrong query": (
        400,
        '{"status":"error","errorType":"bad_data","error":"unknown function"}',
        "query",
        "bad_data: unknown function",
        "",
    ),
    "Prometheus, out of time": (
        503,
        '{"status":"error","errorType":"timeout","error":"query timed out"}',
        "unavailable",
        "timeout: query timed out",
        "",
    ),
    "VictoriaMetrics, too many series": (
        422,
        '{"status":"error","errorType":"422","error":"cannot find more than 300000 series"}',
        "query",
        "more than 300000 series",
        "",
    ),
    "VictoriaMetrics, a long query": (
        422,
        f'{{"status":"error","errorType":"422","error":"error in {"q" * 9000}: want string"}}',
        "query",
        "want string",
        "422: 422",
    ),
    "VictoriaMetrics, a wrong path": (
        400,
        f"requestURI: /wrong?query={'q|' * 900}; unsupported path requested",
        "status",
        "unsupported path requested; check the URL's path prefix",
        "",
    ),
    "Mimir without a tenant": (401, "no org id\n", "denied", "no org id; check the token", ""),
    "AWS": (
        403,
        '{"message":"The security token included in the request is expired"}',
        "denied",
        "security token included in the request is expired; check",
        "",
    ),
    "Azure": (
        403,
        '{"error":{"code":"Forbidden","message":"No role on this workspace"}}',
        "denied",
        "No role on this workspace",
        "",
    ),
    "Google": (
        403,
        '[{"error":{"code":403,"message":"Permission monitoring.timeSeries.list denied"}}]',
        "denied",
        "Permission monitoring.timeSeries.list denied",
        "",
    ),
    "one that echoes the token": (401, f'{{"message":"bad {TOKEN}"}}', "denied", "bad …", TOKEN),
    "a page": (404, "<html>Not here</html>", "status", "404; check the URL's path", "html"),
    "a proxy without POST": (405, "", "status", "use method GET", ""),
    "a proxy's error": (502, "upstream connect error", "unavailable", "upstream connect", ""),
    "no Prometheus": (
        501,
        "<html>Unsupported method ('POST')</html>",
        "status",
        "501; no query API of Prometheus is at this address: correct the URL",
        "html",
    ),
    "numbers": (500, "[1, 2]", "unavailable", "HTTP status 500", "1, 2"),
    "a message that is none": (500, '{"message": 5}', "unavailable", "HTTP status 500", "5}"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_reported_with_the_message_of_the_server(name: str) -> None:
    status, body, reason, message, unsaid = REFUSALS[name]
    error = refusal(status, body.encode())
    assert error.reason == reason
    assert message in str(error)
    assert not unsaid or unsaid not in str(error)


# Credentials, and a body that repeats them.
REPEATED = {
    "as it is": ("s3cr3t/a&b", b"bad key s3cr3t/a&b"),
    "in JSON": ('s3cr3t"a', rb'{"error": "bad key s3cr3t\"a"}'),
    "in Go's JSON": ("s3cr3t<a&b>", rb'{"error": "bad key s3cr3t\u003ca\u0026b\u003e"}'),
    "in a URL": ("s3cr3t/a&b", b"GET /api/v1/query?key=s3cr3t%2Fa%26b: bad key"),
}


@pytest.mark.parametrize(("shown", "body"), REPEATED.values(), ids=REPEATED)
def test_credentials_are_redacted_in_any_spelling(shown: str, body: bytes) -> None:
    left = withhold_secrets(body, [shown])
    assert b"s3cr3t" not in left
    assert left.count(b"(withheld)") == 1
