"""The settings of a store, and the queries and credentials that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config.process.config import ConfigError, load
from adapter.config.settings import Settings
from adapter.pipeline.sources.azure.source import AzureLogsSource
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.aws import AwsLogin
from adapter.pipeline.sources.login.port import Anonymous, Basic, Bearer, BearerFile
from adapter.pipeline.sources.prometheus.source import PrometheusSource
from adapter.server.serve.build import (
    azure_logs_options,
    build_source,
    prometheus_options,
    query_groups,
    telemetry_options,
)
from tests.adapter.world import CATALOG, World

HTTPS = "https://engine.example"


def settings(text: str) -> Settings:
    return Settings.model_validate({"source": yaml.safe_load(text)})


def prometheus(more: str, url: str = HTTPS) -> Settings:
    return settings(f"{{kind: prometheus, prometheus: {{url: '{url}', {more}}}}}")


LOGINS: Mapping[str, tuple[str, type]] = {
    "nothing": ("method: POST", Anonymous),
    "a user": ("username: u, password: p", Basic),
    "a token in a file": ("bearer_token_file: {folder}/token", BearerFile),
    "a password in a file": ("username: u, password_file: {folder}/token", Basic),
    "Azure": ("auth: {kind: azure}", Bearer),
    "Google": ("auth: {kind: google}", Bearer),
    "AWS": ("auth: {kind: aws, aws: {region: eu-central-1}}", AwsLogin),
}


@pytest.mark.parametrize("name", LOGINS)
def test_the_settings_determine_the_credentials(name: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    more, kind = LOGINS[name]
    more = more.replace("{folder}", str(tmp_path))
    assert type(prometheus_options(prometheus(more)).login) is kind


@pytest.mark.parametrize("key", ["bearer_token_file", "username: u, password_file"])
def test_a_secret_file_that_is_missing_is_named_with_its_key(key: str) -> None:
    with pytest.raises(CredentialError) as error:
        prometheus_options(prometheus(f"{key}: /no/such/file"))
    name = key.rpartition(" ")[2]
    assert str(error.value) == (
        f"{name}: /no/such/file cannot be read (No such file or directory); mount the secret there"
    )


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "two ways at once": (
        "auth: {kind: azure}, bearer_token_file: /t",
        HTTPS,
        "auth.kind excludes username",
    ),
    "a token in the clear": ("auth: {kind: google}", "http://e", "needs a url with https"),
    "AWS without a region": ("auth: {kind: aws}", HTTPS, "needs aws.region"),
    "the adapter's own parameter": ("params: {query: up}", HTTPS, "params must not hold query"),
    "a password in the clear": ("username: u", "http://engine:9090", "set plain_http: true where"),
    "a token file in the clear": ("bearer_token_file: /t", "http://engine", "plain_http: true"),
    "a header's token in the clear": (
        "headers: {authorization: Bearer x}",
        "http://engine",
        "plain_http: true",
    ),
    "two Authorizations": (
        "bearer_token_file: /t, headers: {Authorization: x}",
        HTTPS,
        "must not hold Authorization",
    ),
    "a header of two lines": (
        r'headers: {X-A: "a\nb"}',
        HTTPS,
        "'X-A' is not a header of one line",
    ),
    "a header's name with a blank": ("headers: {X A: b}", HTTPS, "'X A' is not a header"),
    "matchers in braces": (
        """matchers: '{cluster="a"}'""",
        HTTPS,
        r"source.prometheus.matchers: leave the braces out",
    ),
    "a query that is not closed": (
        "query: {utilization: 'sum(x'}",
        HTTPS,
        r"query.utilization: has a \( that is not closed",
    ),
    "a tenant that cannot be one": (
        "auth: {kind: azure, azure: {tenant_id: 'https://t'}}",
        HTTPS,
        "azure.tenant_id: String should match",
    ),
    "an authority in the clear": (
        "auth: {kind: azure, azure: {authority: 'http://login.example'}}",
        HTTPS,
        "authority: must begin with https://",
    ),
    "an audience with a path": (
        "auth: {kind: azure, azure: {audience: 'https://a/b'}}",
        HTTPS,
        "should match pattern",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_setting_is_rejected_with_the_fix(name: str, tmp_path: Any) -> None:
    more, url, message = REFUSED[name]
    file = tmp_path / "config.yaml"
    file.write_text(f"source: {{kind: prometheus, prometheus: {{url: '{url}', {more}}}}}")
    with pytest.raises(ConfigError, match=message):
        load(file, environ={})


IN_THE_CLEAR = {
    "to this machine": ("username: u, password: p", "http://127.0.0.1:9090"),
    "where a mesh encrypts": ("username: u, plain_http: true", "http://engine:9090"),
    "without anything secret": ("tenant: a", "http://engine:9090"),
}


@pytest.mark.parametrize("name", IN_THE_CLEAR)
def test_http_is_allowed_only_without_secrets_or_on_loopback(name: str) -> None:
    more, url = IN_THE_CLEAR[name]
    assert prometheus_options(prometheus(more, url)).url.rstrip("/") == url


def test_log_analytics_gets_no_token_without_tls() -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        settings(
            "{kind: azure_logs, azure_logs: {workspace_id: w, endpoint: 'http://api.example'}}"
        )


def test_the_tenant_is_sent_to_mimir_and_thanos_and_a_user_header_takes_precedence() -> None:
    made = prometheus_options(prometheus("tenant: a, headers: {THANOS-TENANT: b}"))
    assert made.headers == {"X-Scope-OrgID": "a", "THANOS-TENANT": "b"}


def test_log_analytics_needs_its_workspace() -> None:
    with pytest.raises(ValueError, match=r"azure_logs\.workspace_id"):
        settings("kind: azure_logs")


def test_the_age_limit_of_log_analytics_covers_its_ingestion_delay() -> None:
    made = settings("{kind: azure_logs, azure_logs: {workspace_id: w-1}}")
    assert telemetry_options(made).oldest == 2 * 60 + 60 + 180
    assert azure_logs_options(made).lookback == 360


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{kind: azure_logs, azure_logs: {workspace_id: w-1}}", AzureLogsSource),
        (f"{{kind: prometheus, prometheus: {{url: '{HTTPS}'}}}}", PrometheusSource),
    ],
)
def test_the_kind_selects_the_source(text: str, kind: type) -> None:
    made = settings(text)
    world = World(options=telemetry_options(made))
    source = build_source(made, CATALOG, world.store, world.objects, world.store.demand)
    assert type(source) is kind
    if isinstance(source, PrometheusSource):
        asked = {name for state in source.groups for name in state.group.series}
        assert "containerGpuDutyCycle" not in asked, "only Log Analytics has it"


def groups(more: str) -> dict[str, tuple[str, ...]]:
    chosen = prometheus(more)
    query = prometheus_options(chosen).query
    return query_groups(CATALOG, query, exact=chosen.source.prometheus.exact)


def test_google_gets_a_query_for_each_exact_series_name() -> None:
    asked = groups("auth: {kind: google}")
    assert all(series == (name,) for name, series in asked.items())
    assert {"DCGM_FI_DEV_GPU_UTIL", "kubernetes_io:container_accelerator_duty_cycle"} <= set(asked)
    assert "DCGM_FI_DEV_GPU_UTIL_percent" not in asked, "each name costs a query"
    assert asked == groups("exact_names: true"), "a proxy before Google's engine"


def test_a_user_query_replaces_its_whole_group_at_google_too() -> None:
    asked = groups("auth: {kind: google}, query: {memory: 'my_memory[1m]'}")
    assert asked["memory"] == CATALOG.groups["memory"]
    assert "DCGM_FI_DEV_FB_USED" not in asked


def test_series_of_google_are_requested_only_there() -> None:
    assert "google" not in groups("method: POST")
    assert groups("method: POST") == groups("auth: {kind: google}, exact_names: false")
