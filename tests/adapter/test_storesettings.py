"""From settings to what a store is asked, and with whose credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapter.cluster.index import PodIndex
from adapter.cluster.nodes import Nodes
from adapter.cluster.services import Services
from adapter.config import ConfigError, load
from adapter.feeds import azure_logs_options, build_source, prometheus_options, telemetry_options
from adapter.objects import Objects
from adapter.settings import Settings
from adapter.sources.awslogin import AwsLogin
from adapter.sources.azurelogs import AzureLogsSource
from adapter.sources.login import Anonymous, Basic, Bearer, BearerFile
from adapter.sources.prometheus import PrometheusSource
from adapter.store import Store
from tests.adapter.telemetryworld import CATALOG

HTTPS = "https://engine.example"


def settings(text: str) -> Settings:
    return Settings.model_validate({"source": yaml.safe_load(text)})


def prometheus(more: str, url: str = HTTPS) -> Settings:
    return settings(f"{{kind: prometheus, prometheus: {{url: '{url}', {more}}}}}")


LOGINS: Mapping[str, tuple[str, type]] = {
    "nothing": ("retries: 2", Anonymous),
    "a user": ("username: u, password: p", Basic),
    "a token in a file": ("bearer_token_file: /token", BearerFile),
    "Azure": ("auth: {kind: azure}", Bearer),
    "Google": ("auth: {kind: google}", Bearer),
    "AWS": ("auth: {kind: aws, aws: {region: eu-central-1}}", AwsLogin),
}


@pytest.mark.parametrize("name", LOGINS)
def test_the_settings_say_what_is_shown(name: str) -> None:
    more, kind = LOGINS[name]
    assert type(prometheus_options(prometheus(more)).login) is kind


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "two ways at once": (
        "auth: {kind: azure}, bearer_token_file: /t",
        HTTPS,
        "auth.kind excludes username",
    ),
    "a token in the clear": ("auth: {kind: google}", "http://e", "needs a url with https"),
    "AWS without a region": ("auth: {kind: aws}", HTTPS, "needs aws.region"),
    "the adapter's own parameter": ("params: {query: up}", HTTPS, "params must not hold query"),
    "an audience with a path": (
        "auth: {kind: azure, azure: {audience: 'https://a/b'}}",
        HTTPS,
        "should match pattern",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_with_its_mend(name: str, tmp_path: Any) -> None:
    more, url, said = REFUSED[name]
    file = tmp_path / "config.yaml"
    file.write_text(f"source: {{kind: prometheus, prometheus: {{url: '{url}', {more}}}}}")
    with pytest.raises(ConfigError, match=said):
        load(file, environ={})


def test_a_tenant_is_told_to_mimir_and_to_thanos_and_a_header_of_the_users_wins() -> None:
    made = prometheus_options(prometheus("tenant: a, headers: {THANOS-TENANT: b}"))
    assert made.headers == {"X-Scope-OrgID": "a", "THANOS-TENANT": "b"}


def test_log_analytics_needs_its_workspace() -> None:
    with pytest.raises(ValueError, match=r"azure_logs\.workspace_id"):
        settings("kind: azure_logs")


def test_rows_of_log_analytics_may_be_as_old_as_its_ingestion_makes_them() -> None:
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
def test_the_kind_says_which_source_is_built(text: str, kind: type) -> None:
    index = PodIndex()
    made = settings(text)
    store = Store(CATALOG, telemetry_options(made), index)
    source = build_source(made, CATALOG, store, Objects(index, Services(), Nodes()))
    assert type(source) is kind
    if isinstance(source, PrometheusSource):
        asked = {name for state in source.groups for name in state.group.series}
        assert "containerGpuDutyCycle" not in asked, "only Log Analytics has it"
