"""Every setting: typed, frozen, documented; the only reader of files and environment.

Sources, strongest first: command-line flags, environment (``GMA_`` and the key's path
joined by ``__``: ``GMA_SOURCE__KIND=prometheus``), the YAML file, the defaults here.
The docstring under a field is its documentation everywhere (``docs/settings.md`` is
generated from it). Durations are seconds or Go-style text (``5s``, ``1m30s``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import durationpy
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    model_validator,
)

from adapter.cluster.manifest import GPU_RESOURCES
from adapter.validity import RatioScale
from apiservice.selector import SelectorError, parse


def _duration(value: object) -> object:
    """Seconds of a Go-style duration; numbers pass through."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return float(durationpy.from_str(value.strip()).total_seconds())
    except Exception as error:
        raise ValueError(f"{value!r} is no duration; write seconds or e.g. 5s, 1m30s") from error


def _selector(text: str) -> str:
    try:
        parse(text)
    except SelectorError as error:
        raise ValueError(f"is no label selector: {error}; write e.g. app=exporter") from None
    return text


def _plain(url: HttpUrl) -> HttpUrl:
    """URLs are told in logs and by readiness: nothing secret may be in one."""
    if url.username is not None or url.password is not None:
        raise ValueError("must hold no user or password; give them in settings of their own")
    return url


def _bare(url: HttpUrl) -> HttpUrl:
    if url.query is not None or url.fragment is not None:
        raise ValueError("must end with the path prefix: leave out what follows ? or #")
    return _plain(url)


Seconds = Annotated[float, BeforeValidator(_duration), Field(ge=0, allow_inf_nan=False)]
Interval = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=86400, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]
LabelSelector = Annotated[str, AfterValidator(_selector)]
PageUrl = Annotated[HttpUrl, AfterValidator(_plain)]
BaseUrl = Annotated[HttpUrl, AfterValidator(_bare)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ServerSettings(_Section):
    """The HTTPS listener of the aggregated API server."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod's listener is reached from outside it
    """Address to listen on; ``::`` for IPv6 and IPv4."""
    port: Port = 6443
    """TCP port; 0 takes a free one."""
    cert_file: Path | None = None
    """Serving certificate (PEM), reloaded when it changes. None: made by ourselves."""
    key_file: Path | None = None
    """Private key of ``cert_file``."""
    cert_dir: Path = Path("/tmp/gpu-metrics-adapter/certs")  # noqa: S108 - an emptyDir in the chart
    """Where the self-signed certificate is kept; ``ca.crt`` in it is the APIService's caBundle."""
    cert_names: tuple[str, ...] = ("gpu-metrics-adapter.gpu-metrics.svc", "localhost", "127.0.0.1")
    """Names and addresses in the self-signed certificate; the Service's own name first."""
    keep_alive: Annotated[Interval, Field(ge=91)] = 130
    """Idle seconds before a connection is closed; above 90, which is how long Go pools one."""
    header_timeout: Interval = 10
    """Seconds a client may take to send a request's head."""
    write_timeout: Interval = 30
    """Seconds a client may stop reading an answer before it is cut off."""
    max_header_bytes: Annotated[int, Field(ge=1024, le=1 << 20)] = 64 * 1024
    """Largest request head accepted, URL included."""
    max_connections: Annotated[int, Field(ge=1)] = 1000
    """Connections served at once; further ones are closed."""
    drain: Seconds = 5
    """Seconds from SIGTERM, with readiness failing, until the listener closes."""
    grace: Interval = 20
    """Seconds that requests in flight may take after that."""

    @model_validator(mode="after")
    def _pair(self) -> ServerSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        return self


class AuthenticationSettings(_Section):
    """Who a request is from. In a cluster nothing need be set."""

    configmap: bool = True
    """Read the CAs and header names from ``kube-system/extension-apiserver-authentication``
    and watch it. Without a cluster the files below are used."""
    requestheader_ca_file: Path | None = None
    """CA of the front proxy's client certificate; overrides the ConfigMap's."""
    requestheader_allowed_names: tuple[str, ...] = ()
    """Common names the front proxy may have; empty allows any that the CA signed."""
    client_ca_file: Path | None = None
    """CA of ordinary client certificates; overrides the ConfigMap's."""
    token_review: bool = True
    """Check bearer tokens by TokenReview (needs a cluster)."""
    token_audiences: tuple[str, ...] = ()
    """Audiences a token must be for; empty means the API server's own."""
    cache: Seconds = 10
    """Seconds a token's verdict is kept, good or bad."""


class AuthorizationSettings(_Section):
    """What a request may do. ``system:masters`` always may."""

    subject_access_review: bool = True
    """Ask the API server (needs a cluster). False: only the lists below are allowed."""
    allow_users: tuple[str, ...] = ()
    """Users allowed everything without asking, for use without a cluster."""
    allow_groups: tuple[str, ...] = ()
    """Groups allowed everything without asking."""
    cache: Seconds = 10
    """Seconds a verdict is kept, allowed or denied."""


class ClusterSettings(_Section):
    """The Kubernetes API that pods are watched from."""

    kubeconfig: Path | None = None
    """Kubeconfig file. None: in-cluster credentials, else ``KUBECONFIG``, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; None is its current one."""
    pods_file: Path | None = None
    """Pods from a file of manifests (YAML or JSON) instead of a cluster; reloaded on change."""
    services: bool = True
    """Watch Services, so that an Object metric may name one."""
    nodes: bool = True
    """Watch Nodes, so that node metrics can be selected by label."""
    gpu_resources: tuple[str, ...] = GPU_RESOURCES
    """Extended resources, as shell patterns, whose holders hold a GPU: rows of any other pod
    are left out. Pods with DRA claims always hold one."""
    stale_after: Interval = 300
    """Seconds without word from the API server after which readiness fails."""


class ExporterRule(_Section):
    """Which pods are exporters, and where on them the page is."""

    name: str
    """What the rule is called in logs and metrics."""
    selector: LabelSelector
    """Label selector over pods."""
    port: int | str
    """Container port, by number or name."""
    path: str = "/metrics"
    """Path of the page."""
    scheme: Literal["http", "https"] = "http"
    """How to ask for it."""
    namespace: str | None = None
    """Only pods of this namespace; None means any."""


class StaticTarget(_Section):
    """An exporter at a fixed address."""

    url: PageUrl
    """The page's URL."""
    node: str | None = None
    """The node whose GPUs it reports, if known."""


class ScrapeSettings(_Section):
    """Direct scraping of exporters."""

    interval: Interval = 5
    """Seconds between two scrapes of one exporter."""
    timeout: Interval = 3
    """Seconds one scrape may take."""
    discover: bool = True
    """Find exporters among the watched pods by the labels of the usual charts."""
    exporters: tuple[ExporterRule, ...] = ()
    """Further discovery rules, tried before the built-in ones."""
    targets: tuple[StaticTarget, ...] = ()
    """Exporters at fixed addresses."""
    concurrency: Annotated[int, Field(ge=1, le=10000)] = 64
    """Scrapes under way at once."""
    max_bytes: Annotated[int, Field(ge=1024)] = 16 * 1024 * 1024
    """Largest page accepted, after decompression."""
    max_backoff: Interval = 60
    """Longest pause, in seconds, between tries of an exporter that keeps failing."""
    ca_file: Path | None = None
    """CA of exporters that speak HTTPS; None trusts the system's."""
    bearer_token_file: Path | None = None
    """Token sent to exporters, read anew for each scrape."""


class PrometheusSettings(_Section):
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
    query: dict[str, str] = Field(default_factory=dict)
    """Metric group (``utilization``, ``profiling``, ``memory`` or ``board``; another name adds
    a query) -> PromQL used in place of the query made from the catalogue. Its series keep the
    exporter's names; ``[1m]`` at its end keeps the times at which they were scraped."""
    matchers: str = ""
    """Label matchers added to every selector, such as ``cluster="a"``."""
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
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers, such as ``X-Scope-OrgID``."""
    max_bytes: Annotated[int, Field(ge=1024)] = 256 * 1024 * 1024
    """Largest answer accepted."""

    @model_validator(mode="after")
    def _exclusive(self) -> PrometheusSettings:
        if self.username and self.bearer_token_file:
            raise ValueError("username and bearer_token_file exclude each other: keep one")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together: set both or neither")
        if self.password and self.password_file:
            raise ValueError("password and password_file exclude each other: keep password_file")
        return self


class SourceSettings(_Section):
    """Where GPU values come from."""

    kind: Literal["scrape", "prometheus"] = "scrape"
    """``scrape`` reads the exporters directly; ``prometheus`` asks a query API."""
    scrape: ScrapeSettings = ScrapeSettings()
    prometheus: PrometheusSettings = PrometheusSettings()

    @model_validator(mode="after")
    def _url(self) -> SourceSettings:
        if self.kind == "prometheus" and self.prometheus.url is None:
            raise ValueError(
                "kind prometheus needs prometheus.url, e.g. http://prometheus.monitoring.svc:9090"
            )
        return self


class ValueSettings(_Section):
    """What a served value promises."""

    window: Interval = 30
    """Seconds that utilisation is averaged over."""
    collect_interval: Interval = 30
    """Seconds between the exporters' own readings (dcgm-exporter's ``--collect-interval``)."""
    age_limit: Interval | None = None
    """Seconds after which a reading is left out; None is twice ``collect_interval`` plus the
    scrape interval."""
    include_unready: bool = False
    """Serve pods that are not Ready too, such as one still loading its model."""
    ratio_scale: RatioScale = RatioScale.AUTO
    """What exporters mean by ``DCGM_FI_DEV_*_UTIL_RATIO``: ``ratio`` is 0-1 (DCGM 4.7),
    ``percent`` 0-100 (DCGM 4.6), ``auto`` is told from each exporter's numbers."""


class LogSettings(_Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""


class Settings(_Section):
    """The whole configuration."""

    server: ServerSettings = ServerSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    cluster: ClusterSettings = ClusterSettings()
    source: SourceSettings = SourceSettings()
    values: ValueSettings = ValueSettings()
    log: LogSettings = LogSettings()
