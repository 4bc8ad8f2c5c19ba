"""Asking a query API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from adapter.settings.cloud import AuthSettings
from adapter.settings.types import BaseUrl, Interval, Promql, Section

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
    """Any engine that answers Prometheus' query API."""

    url: BaseUrl | None = None
    """Base URL, with the path prefix if there is one (``https://mimir/prometheus``)."""
    interval: Interval = 15
    """Seconds between two rounds of queries."""
    timeout: Interval = 10
    """Seconds one query may take."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Tries beyond the first within one round."""
    scrape_interval: Interval = 15
    """Seconds between Prometheus' own scrapes of the exporters; part of the age limit."""
    query: dict[str, Promql] = Field(default_factory=dict)
    """Metric group (``utilization``, ``profiling``, ``memory`` or ``board``; another name adds
    a query) -> PromQL used in place of the query made from the catalogue. Its series keep the
    exporter's names; ``[1m]`` at its end keeps the times at which they were scraped."""
    matchers: Annotated[str, AfterValidator(_matchers)] = ""
    """Label matchers added to every selector, such as ``cluster="a"``."""
    exact_names: bool | None = None
    """Ask for every series in a query of its own. Google's engine takes names in no other way,
    so None is true for ``auth.kind: google``; set it where a proxy stands before that engine.
    GKE's own ``kubernetes_io:container_accelerator_…`` are asked for then too: of a value a
    minute, they need ``values.collect_interval: 60s``."""
    username: str | None = None
    """Basic authentication's user."""
    password: SecretStr | None = None
    """Basic authentication's password; better ``password_file``."""
    password_file: Path | None = None
    """File with the password, read anew for each round."""
    bearer_token_file: Path | None = None
    """File with a bearer token, read anew for each round."""
    ca_file: Path | None = None
    """CA of the server's certificate; None trusts the system's."""
    cert_file: Path | None = None
    """TLS client certificate."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    plain_http: bool = False
    """Send user and password or bearer token over http too, such as where a service mesh
    encrypts. Without it they go to this machine and over https alone."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers."""
    tenant: Annotated[str, Field(min_length=1)] | None = None
    """Sent as ``X-Scope-OrgID`` (Mimir, Cortex) and ``THANOS-TENANT`` (Thanos). A cluster of
    VictoriaMetrics has its tenant in the URL: ``http://vmselect:8481/select/0/prometheus``."""
    params: dict[str, str] = Field(default_factory=dict)
    """Parameters sent with every query, such as Thanos' ``dedup: "true"`` and
    ``partial_response: "false"``, or VictoriaMetrics' ``nocache: "1"`` and ``extra_label``."""
    method: Literal["GET", "POST"] = "POST"
    """How queries are sent. ``GET`` is for proxies that let nothing else through; theirs and
    the engine's limits for a URL must be above 8 KiB."""
    auth: AuthSettings = AuthSettings()
    max_bytes: Annotated[int, Field(ge=1024)] = 256 * 1024 * 1024
    """Largest answer accepted."""

    @model_validator(mode="after")
    def _cloud(self) -> PrometheusSettings:
        if self.auth.kind == "none":
            return self
        if self.username or self.bearer_token_file:
            raise ValueError("auth.kind excludes username and bearer_token_file: keep one")
        if self.url is not None and self.url.scheme != "https":
            raise ValueError(f"auth.kind {self.auth.kind} needs a url with https")
        return self

    @model_validator(mode="after")
    def _in_the_clear(self) -> PrometheusSettings:
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
    def _headers(self) -> PrometheusSettings:
        own = self.auth.kind != "none" or self.username or self.bearer_token_file
        if own and _authorization(self.headers):
            raise ValueError("headers must not hold Authorization beside other credentials")
        for name, value in self.headers.items():
            if not _TOKEN.fullmatch(name) or not value.isprintable():
                raise ValueError(f"headers: {name!r} is no header of one line")
        return self

    @model_validator(mode="after")
    def _params(self) -> PrometheusSettings:
        for name in sorted(_OWN_PARAMS & self.params.keys()):
            raise ValueError(f"params must not hold {name}: it is set by the adapter itself")
        return self

    @model_validator(mode="after")
    def _exclusive(self) -> PrometheusSettings:
        if self.username and self.bearer_token_file:
            raise ValueError("username and bearer_token_file exclude each other: keep one")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        if self.password and self.password_file:
            raise ValueError("password and password_file exclude each other: keep password_file")
        return self

    @property
    def exact(self) -> bool:
        """Every series needs a query of its own."""
        return self.auth.kind == "google" if self.exact_names is None else self.exact_names
