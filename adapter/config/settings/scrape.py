"""Settings: direct scraping of exporters and server pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from adapter.config.settings.pageaccess import PageAccessSettings, TlsConfig
from adapter.config.settings.types import ADVANCED, Interval, LabelSelector, PageUrl, Section
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.sources.scrape.discovery import DiscoveryRule
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import Scheme

_DEFAULTS: Final = ScrapeOptions()
_RULE: Final = DiscoveryRule("")
_SERVERS: Final = ServerPages()

_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
"""Name of a container port in Kubernetes: at least one letter, at most 15 characters."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _pod_name(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise ValueError("must be namespace/name")
    return text


def _page_path(text: str) -> str:
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must begin with / and have no blanks")
    return text


def _port_name(text: str) -> str:
    if not _PORT_NAME.fullmatch(text):
        raise ValueError("must be a container port's name, such as metrics; a number goes unquoted")
    return text


def _port(given: int | str) -> int | str:
    if isinstance(given, str):
        return _port_name(given)
    if not 1 <= given <= 65535:
        raise ValueError("must be 1-65535, or the name of a container port")
    return given


def _namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise ValueError("must be the name of a namespace; patterns are not supported")
    return text


PodName = Annotated[str, AfterValidator(_pod_name)]
PagePath = Annotated[str, AfterValidator(_page_path)]
PortName = Annotated[str, AfterValidator(_port_name)]
PortNumber = Annotated[int, Field(ge=1, le=65535)]
ExporterPort = Annotated[int | str, AfterValidator(_port)]
Namespace = Annotated[str, AfterValidator(_namespace)]


class ExporterRule(PageAccessSettings):
    """A rule that finds the pods of an exporter and their pages.

    A pod of the rule can set its page's ``…/port``, ``…/path``, ``…/scheme``, ``…/server-name``
    and ``…/insecure-skip-verify`` with annotations ``gpu-metrics-adapter.io/…``. If the rule has no
    ``namespace``, the adapter sends no credentials to a pod that does.
    """

    name: str
    """Name of the rule in logs and metrics."""
    selector: LabelSelector
    """Label selector for the pods."""
    port: ExporterPort
    """Container port, by number or name."""
    path: PagePath = _RULE.path
    """Path of the page."""
    scheme: Scheme = _RULE.scheme
    """Protocol of the page."""
    namespace: Namespace | None = None
    """Namespace of the pods, all of which are scraped; if not set, one pod of every namespace on
    each node. Such a pod is believed about every GPU of its node, so choose a namespace in which
    tenants cannot create pods."""

    @model_validator(mode="after")
    def _check_credentials(self) -> ExporterRule:
        if self.credentials and self.namespace is None:
            raise ValueError(
                f"{self.credentials} needs namespace: without it, anyone who may create a pod with "
                "the labels of selector receives the credentials"
            )
        return self


class StaticTarget(PageAccessSettings):
    """An exporter at a fixed address."""

    url: PageUrl
    """URL of the page."""
    node: str | None = None
    """Node whose GPUs the page describes, if known."""
    pod: PodName | None = None
    """``namespace/name`` of the pod whose inference server serves the page. Its samples describe
    this pod only."""

    @model_validator(mode="after")
    def _check_credentials(self) -> StaticTarget:
        if self.credentials and self.pod is not None:
            raise ValueError(
                f"{self.credentials} is for exporters: no credentials are sent to the page of a pod"
            )
        return self


class InferenceSettings(Section):
    """Pages of inference servers such as vLLM, and of gateways in front of them.

    A pod opts in with the annotation (or label) ``gpu-metrics-adapter.io/scrape: "true"``. It can
    set ``…/port`` (number or name), ``…/path``, ``…/scheme``, ``…/server-name`` (of its
    certificate) and ``…/insecure-skip-verify`` in the same way. ``"false"`` excludes a pod that
    ``selector`` or ``port_names`` would select.
    """

    enabled: bool = True
    """Scrape the pods that opt in and the pods that the keys below select."""
    prometheus_annotations: bool = False
    """Also follow ``prometheus.io/scrape``, ``…/port``, ``…/path`` and ``…/scheme``."""
    selector: LabelSelector | None = None
    """Label selector for pods to scrape without opting in. If not set, none."""
    port_names: tuple[PortName, ...] = ()
    """Names of container ports to scrape: of the pods that ``selector`` selects, or of every
    pod."""
    port: PortNumber | None = None
    """Port of pods that do not set one. If not set, the pod's only container port."""
    path: PagePath = _SERVERS.path
    """Path of the page of pods that do not set one."""
    scheme: Scheme = _SERVERS.scheme
    """Protocol for pods that do not set one."""
    tls_config: TlsConfig = TlsConfig()
    namespaces: tuple[Namespace, ...] = ()
    """Namespaces whose pods may be scraped. If empty, every namespace."""
    max_bytes: Annotated[int, Field(ge=1024), ADVANCED] = _DEFAULTS.server_max_bytes
    """Largest server page that is accepted, after decompression."""
    label_bytes: Annotated[int, Field(ge=1024 * 1024), ADVANCED] = _DEFAULTS.server_label_bytes
    """Memory for the label sets of server pages. Further samples are left out as ``over_budget``.
    """
    sample_bytes: Annotated[int, Field(ge=1024 * 1024), ADVANCED] = TelemetryOptions().server_bytes
    """Memory for the samples of server pages, a sixteenth of it for one pod. A longer
    ``values.window`` needs more. Further pages are left out as ``over_budget``."""


class ScrapeSettings(Section):
    """Direct scraping of exporters."""

    interval: Interval = _DEFAULTS.interval
    """Seconds between two scrapes of one exporter."""
    timeout: Annotated[Interval, ADVANCED] = _DEFAULTS.timeout
    """Seconds that one scrape may take."""
    discover: bool = True
    """Find exporters by the labels of the usual charts, in every namespace: one of a vendor on each
    node, and if any mounts a directory of its node, none that mounts none. If tenants can mount
    directories of nodes, or your exporters mount none, list them in ``exporters`` instead."""
    exporters: tuple[ExporterRule, ...] = ()
    """Discovery rules of your own, before those of ``discover``."""
    inference: InferenceSettings = InferenceSettings()
    targets: tuple[StaticTarget, ...] = ()
    """Exporters at fixed addresses."""
    concurrency: Annotated[int, Field(ge=1, le=10000), ADVANCED] = _DEFAULTS.concurrency
    """Exporters scraped at the same time, and as many server pages: an eighth of them for one
    namespace."""
    max_bytes: Annotated[int, Field(ge=1024), ADVANCED] = _DEFAULTS.max_bytes
    """Largest page that is accepted from an exporter, after decompression."""
    label_bytes: Annotated[int, Field(ge=1024 * 1024), ADVANCED] = _DEFAULTS.label_bytes
    """Memory for the label sets of exporters' pages. 128 MiB hold about 20,000 GPUs with pods.
    Further samples are left out as ``over_budget``."""
    max_backoff: Annotated[Interval, ADVANCED] = _DEFAULTS.max_backoff
    """Longest pause, in seconds, between two scrapes of an exporter that keeps failing."""
    ca_file: Path | None = None
    """CA of pages that use HTTPS. If not set, the system's CAs are trusted."""
    bearer_token_file: Path | None = None
    """File with a bearer token, for ``targets`` and every pod that is scraped as an exporter, never
    for server pages. If tenants can create pods, turn ``discover`` off: while no exporter mounts a
    directory of its node, labels alone make a pod an exporter."""
