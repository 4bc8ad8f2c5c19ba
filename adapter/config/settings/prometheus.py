"""Settings: a store with the Prometheus query API as a source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from adapter.config.settings.cloud import AuthSettings
from adapter.config.settings.types import ADVANCED, BaseUrl, Interval, Promql, Section
from adapter.pipeline.sources.prometheus.options import PrometheusOptions

_DEFAULTS: Final = PrometheusOptions(url="", lookback=0)

_OWN_PARAMS = frozenset(("query", "time", "timeout"))
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""RFC 9110, section 5.6.2."""


def _matchers(text: str) -> str:
    bare = text.strip().removesuffix(",")
    if bare.startswith("{") or bare.endswith("}"):
        raise ValueError('leave the braces out, as in cluster="a"')
    return bare


def _authorization(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "authorization" for name in headers)


class PrometheusSettings(Section):
    """Any engine that serves the Prometheus query API."""

    url: BaseUrl | None = None
    """Base URL, with the engine's path prefix (``https://mimir/prometheus``)."""
    interval: Interval = _DEFAULTS.interval
    """Seconds between two rounds of queries."""
    timeout: Annotated[Interval, ADVANCED] = _DEFAULTS.timeout
    """Seconds that one query may take."""
    scrape_interval: Interval = 15
    """Seconds between two scrapes of an exporter by Prometheus; part of the age limit."""
    query: Annotated[dict[str, Promql], ADVANCED] = Field(default_factory=dict)
    """PromQL by metric group (``utilization``, ``profiling``, ``memory`` or ``board``), instead of
    the adapter's query; another name adds one. The series must keep the exporter's names. ``[1m]``
    at the end keeps the times of the scrapes."""
    matchers: Annotated[str, AfterValidator(_matchers)] = _DEFAULTS.matchers
    """Label matchers for every selector, such as ``cluster="a"``."""
    exact_names: Annotated[bool | None, ADVANCED] = None
    """Query every series by its exact name, as Google's engine needs, and GKE's
    ``kubernetes_io:container_accelerator_…`` series, which need ``values.collect_interval: 60s``.
    True for ``auth.kind: google``; set it if a proxy hides that engine."""
    username: str | None = None
    """User for basic authentication."""
    password: SecretStr | None = None
    """Password for basic authentication. Prefer ``password_file``."""
    password_file: Path | None = None
    """File with the password."""
    bearer_token_file: Path | None = None
    """File with a bearer token."""
    ca_file: Path | None = None
    """CA of the server's certificate. If not set, the system's CAs are trusted."""
    cert_file: Path | None = None
    """TLS client certificate."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    plain_http: Annotated[bool, ADVANCED] = False
    """Allow credentials over plain HTTP to other machines, such as in a service mesh that
    encrypts."""
    headers: Annotated[dict[str, str], ADVANCED] = Field(default_factory=dict)
    """Headers of every query."""
    tenant: Annotated[str, Field(min_length=1)] | None = None
    """Tenant, sent as ``X-Scope-OrgID`` (Mimir, Cortex) and ``THANOS-TENANT`` (Thanos); a
    VictoriaMetrics cluster has it in the URL (``http://vmselect:8481/select/0/prometheus``)."""
    params: Annotated[dict[str, str], ADVANCED] = Field(default_factory=dict)
    """Parameters of every query, such as ``partial_response: "false"`` for Thanos, or ``nocache:
    "1"`` for VictoriaMetrics."""
    method: Annotated[Literal["GET", "POST"], ADVANCED] = _DEFAULTS.method
    """HTTP method of the queries. ``GET`` needs an engine and proxies that accept URLs of 8 KiB."""
    auth: AuthSettings = AuthSettings()
    max_bytes: Annotated[int, Field(ge=1024), ADVANCED] = _DEFAULTS.max_bytes
    """Largest answer that is accepted."""

    @model_validator(mode="after")
    def _check_cloud(self) -> PrometheusSettings:
        if self.auth.kind == "none":
            return self
        if self.username or self.bearer_token_file:
            raise ValueError("auth.kind excludes username and bearer_token_file: keep one")
        if self.url is not None and self.url.scheme != "https":
            raise ValueError(f"auth.kind {self.auth.kind} needs a url with https")
        return self

    @model_validator(mode="after")
    def _check_encryption(self) -> PrometheusSettings:
        secret = self.username or self.bearer_token_file or _authorization(self.headers)
        if not secret or self.url is None or self.url.scheme == "https" or self.plain_http:
            return self
        if self.url.host not in _LOOPBACK:
            raise ValueError(
                "user and token would go over http unencrypted: give a url with https, or set "
                "plain_http: true where something else encrypts"
            )
        return self

    @model_validator(mode="after")
    def _check_headers(self) -> PrometheusSettings:
        authenticates = self.auth.kind != "none" or self.username or self.bearer_token_file
        if authenticates and _authorization(self.headers):
            raise ValueError("headers must not hold Authorization beside other credentials")
        for name, value in self.headers.items():
            if not _TOKEN.fullmatch(name) or not value.isprintable():
                raise ValueError(f"headers: {name!r} is not a header of one line")
        return self

    @model_validator(mode="after")
    def _check_params(self) -> PrometheusSettings:
        for name in sorted(_OWN_PARAMS & self.params.keys()):
            raise ValueError(f"params must not hold {name}: it is set by the adapter itself")
        return self

    @model_validator(mode="after")
    def _check_exclusions(self) -> PrometheusSettings:
        if self.username and self.bearer_token_file:
            raise ValueError("username and bearer_token_file exclude each other: keep one")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        if self.password and self.password_file:
            raise ValueError("password and password_file exclude each other: keep password_file")
        return self

    @property
    def exact(self) -> bool:
        """Whether each series needs its own query."""
        return self.auth.kind == "google" if self.exact_names is None else self.exact_names
