"""Reading exporters directly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from adapter.settings.types import Interval, LabelSelector, PageUrl, Section

_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
"""Kubernetes, "ports name" of a container: at least one letter, 15 characters at most."""
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
        raise ValueError("must be a namespace's name as it is: there are no patterns")
    return text


PodName = Annotated[str, AfterValidator(_pod_name)]
PagePath = Annotated[str, AfterValidator(_page_path)]
PortName = Annotated[str, AfterValidator(_port_name)]
PortNumber = Annotated[int, Field(ge=1, le=65535)]
ExporterPort = Annotated[int | str, AfterValidator(_port)]
Namespace = Annotated[str, AfterValidator(_namespace)]


class ExporterRule(Section):
    """Which pods are exporters, and where on them the page is."""

    name: str
    """What the rule is called in logs and metrics."""
    selector: LabelSelector
    """Label selector over pods."""
    port: ExporterPort
    """Container port, by number or name."""
    path: PagePath = "/metrics"
    """Path of the page."""
    scheme: Literal["http", "https"] = "http"
    """How to ask for it."""
    namespace: Namespace | None = None
    """Only pods of this namespace; None means any. Who may create pods there is believed about
    every GPU of their nodes."""


class StaticTarget(Section):
    """An exporter at a fixed address."""

    url: PageUrl
    """The page's URL."""
    node: str | None = None
    """The node whose GPUs it reports, if known."""
    pod: PodName | None = None
    """``namespace/name`` of the pod whose own page this is, an inference server's: its rows
    are about that pod and nothing else."""


class InferenceSettings(Section):
    """Pages that pods serve about themselves: vLLM, Triton, TGI, SGLang and the like.

    A pod asks for it with the annotation (or label) ``gpu-metrics-adapter.io/scrape: "true"``,
    and may say ``…/port`` (number or name), ``…/path`` and ``…/scheme``. ``"false"`` keeps it
    out of what ``selector`` and ``port_names`` choose.
    """

    enabled: bool = True
    """Read the pages of pods that ask for it, or that are chosen below."""
    prometheus_annotations: bool = False
    """Follow ``prometheus.io/scrape``, ``…/port``, ``…/path`` and ``…/scheme`` too."""
    selector: LabelSelector | None = None
    """Label selector over pods that serve a page without asking; None chooses none."""
    port_names: tuple[PortName, ...] = ()
    """Names of container ports. Without ``selector``, every pod that has one serves its page
    there; with it, this is where the chosen pods have theirs."""
    port: PortNumber | None = None
    """Port of pods that do not say; None is a pod's only container port."""
    path: PagePath = "/metrics"
    """Path of the page of pods that do not say."""
    scheme: Literal["http", "https"] = "http"
    """How to ask pods that do not say."""
    namespaces: tuple[Namespace, ...] = ()
    """Only pods of these namespaces; empty means any."""
    max_bytes: Annotated[int, Field(ge=1024)] = 1024 * 1024
    """Largest page accepted from such a pod, after decompression."""
    label_bytes: Annotated[int, Field(ge=1024 * 1024)] = 32 * 1024 * 1024
    """Memory for the label sets on the pages of all such pods. Rows with further ones are left
    out and counted as ``over_budget``."""
    sample_bytes: Annotated[int, Field(ge=1024 * 1024)] = 96 * 1024 * 1024
    """Memory for the samples of all such pods; one pod may use a sixteenth. It has to grow with
    ``values.window``. Pages for which there is none are left out and counted as
    ``over_budget``."""


class ScrapeSettings(Section):
    """Direct scraping of exporters."""

    interval: Interval = 5
    """Seconds between two scrapes of one exporter."""
    timeout: Interval = 3
    """Seconds one scrape may take."""
    discover: bool = True
    """Find exporters among the watched pods by the labels of the usual charts, in any namespace.
    Where tenants may create such pods turn it off and say in ``exporters`` where yours are."""
    exporters: tuple[ExporterRule, ...] = ()
    """Discovery rules, tried before those of ``discover``, and without it too."""
    inference: InferenceSettings = InferenceSettings()
    targets: tuple[StaticTarget, ...] = ()
    """Exporters at fixed addresses."""
    concurrency: Annotated[int, Field(ge=1, le=10000)] = 64
    """Scrapes of exporters under way at once, and as many of pods that serve a page about
    themselves. Pods of one namespace get an eighth of the latter."""
    max_bytes: Annotated[int, Field(ge=1024)] = 16 * 1024 * 1024
    """Largest page accepted from an exporter, after decompression."""
    label_bytes: Annotated[int, Field(ge=1024 * 1024)] = 128 * 1024 * 1024
    """Memory for the label sets on the pages of all exporters: 128 MiB are some 20,000 GPUs with
    pods. Rows with further ones are left out and counted as ``over_budget``."""
    max_backoff: Interval = 60
    """Longest pause, in seconds, between tries of an exporter that keeps failing."""
    ca_file: Path | None = None
    """CA of exporters that speak HTTPS; None trusts the system's."""
    bearer_token_file: Path | None = None
    """Token sent to ``targets`` and to every pod that is discovered as an exporter, read anew for
    each scrape; never to pods that are scraped for a page of their own. With it set, turn
    ``discover`` off where tenants may create pods: labels alone make an exporter."""
