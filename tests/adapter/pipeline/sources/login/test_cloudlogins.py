"""Logins at Azure, Google and AWS, against servers that simulate their token endpoints.

The servers check what the vendors document: Azure's IMDS ("Acquire an access
token") and Entra's client assertion, Google's metadata server, AWS's IMDSv2 and signature
version 4. The vendors' libraries send the requests.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import importlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.aws import AwsLogin
from adapter.pipeline.sources.login.azure import AzureIdentity, azure_tokens
from adapter.pipeline.sources.login.google import READ, google_tokens
from adapter.pipeline.sources.login.port import Bearer, Login, Outgoing
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from tests.adapter.pipeline.sources.conftest import Recorder, Request, Web, answer, running, settled
from tests.apiservice.pki import Authority, server_context

JSON = "Content-Type: application/json\r\n"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
CLIENT = "9f0a3a3c-1111-2222-3333-444444444444"
AUDIENCE = "https://prometheus.monitor.azure.com"
QUERY = Outgoing("POST", "https://engine.example/api/v1/query", {"Content-Type": "text/x"}, b"q=up")

CLOUDS = (
    *("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST"),
    *("IDENTITY_ENDPOINT", "MSI_ENDPOINT", "AZURE_POD_IDENTITY_AUTHORITY_HOST"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_REGION", "AWS_DEFAULT_REGION"),
)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No cloud's traces in the environment."""
    for name in CLOUDS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def reply(**content: Any) -> Any:
    return answer(json.dumps(content).encode(), headers=JSON)


def query_of(request: Request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.line.split(" ")[1]).query)


async def shown(login: Login) -> Mapping[str, str]:
    return await login.headers(QUERY)


@dataclass
class Secure:
    """A server on loopback with TLS, and the certificates of an old CA."""

    web: Web
    url: str
    ca: Path


@pytest.fixture
async def secure(web: Web, tmp_path: Path) -> AsyncIterator[Secure]:
    authority = Authority("ca", time.time(), old=True)
    context = server_context(authority.server("127.0.0.1", "localhost"), tmp_path)
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    yield Secure(web, f"https://127.0.0.1:{port}", ca)
    server.close()


async def test_azure_managed_identity_requests_the_audience_from_the_node(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", web.url(""))
    web.replies["/metadata/identity/oauth2/token"] = reply(
        access_token="node-token",
        expires_in="86400",
        expires_on=str(int(time.time()) + 86400),
        resource=AUDIENCE,
        token_type="Bearer",
    )
    login = Bearer(azure_tokens(AzureIdentity(client_id=CLIENT), AUDIENCE))
    assert await shown(login) == {"Authorization": "Bearer node-token"}
    await shown(login)
    (request,) = web.requests
    assert request.headers["metadata"] == "true"
    asked = query_of(request)
    assert (asked["resource"], asked["client_id"]) == ([AUDIENCE], [CLIENT])


async def test_azure_without_an_identity_is_reported(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", web.url(""))
    error = json.dumps({"error": "invalid_request", "error_description": "Identity not found"})
    web.replies["/metadata/identity/oauth2/token"] = answer(
        error.encode(), "400 Bad Request", headers=JSON
    )
    with pytest.raises(CredentialError, match=r"Azure identity.*Identity not found"):
        await shown(Bearer(azure_tokens(AzureIdentity(), AUDIENCE)))


WRONG_IDENTITIES = {
    "an authority in the clear": (AzureIdentity("c", TENANT, "http://login.example"), "https"),
    "no client": (AzureIdentity(None, TENANT), "client_id"),
}


@pytest.mark.parametrize("name", WRONG_IDENTITIES)
def test_an_impossible_azure_identity_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    identity, message = WRONG_IDENTITIES[name]
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", "/token")
    with pytest.raises(CredentialError, match=f"the identity cannot be used: .*{message}"):
        azure_tokens(identity, AUDIENCE)


async def test_azure_workload_identity_exchanges_the_pods_token(
    secure: Secure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    projected = tmp_path / "azure-identity-token"
    projected.write_text("service-account-jwt")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(projected))
    monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(secure.ca))
    base = f"{secure.url}/{TENANT}"
    secure.web.replies[f"/{TENANT}/v2.0/.well-known/openid-configuration"] = reply(
        issuer=f"{base}/v2.0",
        authorization_endpoint=f"{base}/oauth2/v2.0/authorize",
        token_endpoint=f"{base}/oauth2/v2.0/token",
    )
    secure.web.replies[f"/{TENANT}/oauth2/v2.0/token"] = reply(
        token_type="Bearer", expires_in=3599, ext_expires_in=3599, access_token="pod-token"
    )
    identity = AzureIdentity(authority=secure.url)
    login = Bearer(azure_tokens(identity, AUDIENCE))
    assert await shown(login) == {"Authorization": "Bearer pod-token"}
    secure.web.replies[f"/{TENANT}/oauth2/v2.0/token"] = reply(
        token_type="Bearer", expires_in=3599, ext_expires_in=3599, access_token="another-token"
    )
    assert login.note_refusal({"Authorization": "Bearer pod-token"})
    assert await shown(login) == {"Authorization": "Bearer another-token"}, "not the library's own"
    form = parse_qs(secure.web.requests[-1].body.decode())
    assert form["client_assertion"] == ["service-account-jwt"]
    assert form["client_id"] == [CLIENT]
    assert f"{AUDIENCE}/.default" in form["scope"][0].split(" ")


async def test_a_managed_prometheus_gets_the_token_and_a_refusal_is_reported(
    secure: Secure, sink: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = secure.web
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", web.url(""))
    token = "/metadata/identity/oauth2/token"
    web.replies[token] = answer(b"{}", "404 Not Found", headers=JSON)
    series = {"metric": {"__name__": "UTIL", "instance": "a:1"}, "values": [[time.time(), "1"]]}
    web.replies["/api/v1/query"] = reply(
        status="success", data={"resultType": "matrix", "result": [series]}
    )
    now = [time.time()]
    tokens = azure_tokens(AzureIdentity(), AUDIENCE, clock=lambda: now[0])
    options = PrometheusOptions(
        secure.url,
        lookback=90.0,
        interval=0.05,
        timeout=15.0,
        ca_file=secure.ca,
        login=Bearer(tokens),
    )
    source = PrometheusSource(options, sink, {"usage": ("UTIL",)})
    async with running(source.run):
        await settled(lambda: source.failures["credential"] > 0)
        assert "Azure identity" in (source.problem(time.time()) or "")
        web.replies[token] = reply(
            access_token="t",
            expires_in="3600",
            expires_on=str(int(now[0]) + 3600),
            resource=AUDIENCE,
            token_type="Bearer",
        )
        now[0] += 11
        await sink.until(lambda: len(sink.results) > 0)
    asked = [request for request in web.requests if request.line.startswith("POST /api/v1/query")]
    assert {request.headers["authorization"] for request in asked} == {"Bearer t"}


def service_account(tmp_path: Path, token_uri: str) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = tmp_path / "adc.json"
    file.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "p",
                "private_key_id": "1",
                "private_key": pem.decode(),
                "client_email": "gma@p.iam.gserviceaccount.com",
                "client_id": "1",
                "token_uri": token_uri,
            }
        )
    )
    return file


async def test_google_exchanges_the_default_credentials_for_a_token(
    secure: Secure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = service_account(tmp_path, f"{secure.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(secure.ca))
    secure.web.replies["/token"] = reply(
        access_token="google-token", expires_in=3599, token_type="Bearer"
    )
    login = Bearer(google_tokens(), {"x-goog-user-project": "p"})
    assert await shown(login) == {
        "Authorization": "Bearer google-token",
        "x-goog-user-project": "p",
    }
    form = parse_qs(secure.web.requests[0].body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    claims = form["assertion"][0].split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["scope"] == READ


async def test_a_certificate_that_a_cloud_library_refuses_is_named_with_the_fix(
    secure: Secure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = service_account(tmp_path, f"{secure.url}/{'long/' * 60}token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    text = "Google.*: certificate verify failed: .*; set REQUESTS_CA_BUNDLE to the CA that signed"
    with pytest.raises(CredentialError, match=text):
        await shown(Bearer(google_tokens()))


async def test_google_uses_the_metadata_server_in_gke(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = importlib.import_module("google.auth.compute_engine._metadata")
    host = f"127.0.0.1:{web.port}"
    # Read from GCE_METADATA_HOST and GCE_METADATA_IP when the library is imported.
    for name, value in (
        ("_GCE_METADATA_HOST", host),
        ("_METADATA_ROOT", f"http://{host}/computeMetadata/v1/"),
        ("_METADATA_IP_ROOT", f"http://{host}"),
    ):
        if hasattr(metadata, name):
            monkeypatch.setattr(metadata, name, value)
    monkeypatch.setenv("GCE_METADATA_IP", host)
    monkeypatch.setenv("NO_GCE_CHECK", "false")
    flavor = "Metadata-Flavor: Google\r\n"
    root = "/computeMetadata/v1"
    account = "gma@p.iam.gserviceaccount.com"
    text = f"{flavor}Content-Type: application/text\r\n"
    web.replies["/"] = answer(b"ok", headers=flavor)
    web.replies[f"{root}/project/project-id"] = answer(b"p", headers=text)
    web.replies[f"{root}/universe/universe-domain"] = answer(b"googleapis.com", headers=text)
    web.replies[f"{root}/universe/universe_domain"] = answer(b"googleapis.com", headers=text)
    info = {"email": account, "scopes": [READ], "aliases": ["default"]}
    web.replies[f"{root}/instance/service-accounts/default/"] = answer(
        json.dumps(info).encode(), headers=f"{flavor}{JSON}"
    )
    token = {"access_token": "gke-token", "expires_in": 3599, "token_type": "Bearer"}
    for name in ("default", account):
        web.replies[f"{root}/instance/service-accounts/{name}/token"] = answer(
            json.dumps(token).encode(), headers=f"{flavor}{JSON}"
        )
    assert await shown(Bearer(google_tokens())) == {"Authorization": "Bearer gke-token"}
    asked = [request for request in web.requests if request.line.split("?")[0].endswith("/token")]
    assert asked[0].headers["metadata-flavor"] == "Google"


async def test_google_without_credentials_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    with pytest.raises(CredentialError, match=r"Google application default.*absent\.json"):
        await shown(Bearer(google_tokens()))


def signature(request: Outgoing, headers: Mapping[str, str], secret: str) -> str:
    """Signature version 4 as AWS documents it, computed without its library."""
    credential = headers["Authorization"].split("Credential=")[1].split(",")[0]
    _, day, region, service, _ = credential.split("/")
    names = headers["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    url = urlsplit(request.url)
    values = {name.lower(): value for name, value in {**request.headers, **headers}.items()}
    values["host"] = url.netloc
    pairs = sorted(part.partition("=")[::2] for part in url.query.split("&") if part)
    canonical = "\n".join(
        (
            request.method,
            url.path or "/",
            "&".join(f"{key}={value}" for key, value in pairs),
            *(f"{name}:{values[name].strip()}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{values['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def signed_by(headers: Mapping[str, str]) -> tuple[str, str]:
    shown = headers["Authorization"]
    return shown.split("Credential=")[1].split("/")[0], shown.split("Signature=")[1]


AWS_REQUESTS = [
    pytest.param(
        Outgoing(
            "POST",
            "https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1/api/v1/query",
            {"Content-Type": "application/x-www-form-urlencoded"},
            b"query=%7B__name__%3D~%22A%7CB%22%7D%5B90000ms%5D&timeout=10s",
        ),
        id="post",
    ),
    pytest.param(
        Outgoing(
            "GET",
            "https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1/api/v1/query"
            "?query=%7B__name__%3D~%22A%7CB%22%7D%5B90000ms%5D&timeout=10s",
            {},
            b"",
        ),
        id="get",
    ),
]


@pytest.mark.parametrize("request_", AWS_REQUESTS)
async def test_aws_requests_are_signed_as_sent(
    monkeypatch: pytest.MonkeyPatch, request_: Outgoing
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "static-secret")
    headers = await AwsLogin("eu-central-1").headers(request_)
    assert "/eu-central-1/aps/aws4_request" in headers["Authorization"]
    assert signed_by(headers) == ("AKIDEXAMPLE", signature(request_, headers, "static-secret"))


async def test_aws_gets_credentials_from_the_node(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", web.url(""))
    roles = "/latest/meta-data/iam/security-credentials/"
    web.replies["/latest/api/token"] = answer(b"imds-session")
    web.replies[roles] = answer(b"gpu-node")
    web.replies[f"{roles}gpu-node"] = reply(
        Code="Success",
        AccessKeyId="AKIDNODE",
        SecretAccessKey="node-secret",
        Token="session",
        Expiration=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 6 * 3600)),
    )
    login = AwsLogin("eu-central-1")
    headers = await shown(login)
    await shown(login)
    assert headers["X-Amz-Security-Token"] == "session"
    assert signed_by(headers) == ("AKIDNODE", signature(QUERY, headers, "node-secret"))
    assert web.requests[0].line.startswith("PUT ")
    assert web.requests[-1].headers["x-aws-ec2-metadata-token"] == "imds-session"
    assert len(web.requests) == 3, "credentials are kept"


ASSUMED = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>AKIDROLE</AccessKeyId>
<SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken>
<Expiration>{until}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


async def test_aws_assumes_a_role(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "static-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", web.url(""))
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    web.replies["/"] = answer(
        ASSUMED.format(until=until).encode(), headers="Content-Type: text/xml\r\n"
    )
    role = "arn:aws:iam::123456789012:role/metrics"
    login = AwsLogin("eu-central-1", role_arn=role, external_id="x-1")
    headers = await shown(login)
    assert signed_by(headers) == ("AKIDROLE", signature(QUERY, headers, "role-secret"))
    form = parse_qs(web.requests[0].body.decode())
    assert (form["RoleArn"], form["ExternalId"]) == ([role], ["x-1"])


async def test_aws_exchanges_the_service_accounts_token(
    web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """IAM roles for service accounts; the webhook's region is not always there."""
    projected = tmp_path / "token"
    projected.write_text("service-account-jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(projected))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", web.url(""))
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    text = ASSUMED.format(until=until).replace("AssumeRole", "AssumeRoleWithWebIdentity")
    web.replies["/"] = answer(text.encode(), headers="Content-Type: text/xml\r\n")
    headers = await shown(AwsLogin("eu-central-1"))
    assert signed_by(headers) == ("AKIDROLE", signature(QUERY, headers, "role-secret"))
    form = parse_qs(web.requests[0].body.decode())
    assert form["WebIdentityToken"] == ["service-account-jwt"]


async def test_cancelled_waiters_do_not_start_more_aws_threads(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "static-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", web.url(""))
    released = asyncio.Event()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    good = answer(ASSUMED.format(until=until).encode(), headers="Content-Type: text/xml\r\n")

    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        await good(request, writer)

    web.replies["/"] = slow
    login = AwsLogin("eu-central-1", role_arn="arn:aws:iam::123456789012:role/metrics")
    for _ in range(3):
        waiting = asyncio.create_task(shown(login))
        await settled(lambda: len(web.requests) == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    released.set()
    assert signed_by(await shown(login))[0] == "AKIDROLE"
    assert len(web.requests) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_aws_signs_the_request_on_the_wire(
    secure: Secure, sink: Recorder, monkeypatch: pytest.MonkeyPatch, method: Literal["GET", "POST"]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "static-secret")
    series = {"metric": {"__name__": "UTIL", "instance": "a:1"}, "values": [[time.time(), "1"]]}
    path = "/workspaces/ws-1/api/v1/query"
    secure.web.replies[path] = reply(
        status="success", data={"resultType": "matrix", "result": [series]}
    )
    options = PrometheusOptions(
        f"{secure.url}/workspaces/ws-1",
        lookback=90.0,
        interval=600.0,
        ca_file=secure.ca,
        method=method,
        matchers='cluster=~"a b|ü+~/*"',
        params={"z": "&=%", "a": ""},
        headers={"X-Scope-OrgID": "not signed"},
        login=AwsLogin("eu-central-1"),
    )
    async with running(PrometheusSource(options, sink, {"usage": ("UTIL",)}).run):
        await sink.until(lambda: len(sink.results) > 0)
    (got,) = secure.web.requests
    names = {"authorization": "Authorization", "x-amz-date": "X-Amz-Date"}
    headers = {names.get(name, name): value for name, value in got.headers.items()}
    url = secure.url + got.line.split(" ")[1]
    sent = Outgoing(method, url, {}, got.body)
    assert signed_by(headers) == ("AKIDEXAMPLE", signature(sent, headers, "static-secret"))
    query = urlsplit(url).query if method == "GET" else got.body.decode()
    asked = parse_qs(query, keep_blank_values=True)
    assert (asked["z"], asked["a"]) == (["&=%"], [""])
    assert 'cluster=~"a b|ü+~/*"' in asked["query"][0]


async def test_aws_without_credentials_is_reported() -> None:
    with pytest.raises(CredentialError, match="none found in the environment"):
        await shown(AwsLogin("eu-central-1"))
