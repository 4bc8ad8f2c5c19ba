"""Checks of inference servers: opted in, at the right port and path, with their queue."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from adapter.config.settings import discovery
from adapter.pipeline.catalog import serverkinds
from adapter.pipeline.catalog.formulas import hides
from adapter.pipeline.catalog.metric import DeviceValue, Scope, Statistic
from adapter.pipeline.catalog.serverkind import GATEWAY_WAITING, WAITING, ServerKind
from adapter.pipeline.catalog.serverkinds import KINDS
from adapter.pipeline.cluster.changes import annotate
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.optin import PREFIX, has_opted_in, words_under
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.sources.scrape.pageaddress import Unscrapable
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.changedobjects import workload_of
from adapter.tools.doctor.checks.hpas import metrics
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.pagefaults import troubled_pages
from adapter.tools.doctor.podcommands import logs, owner
from adapter.tools.doctor.scaletargets import pods_of, target_of

_PORT_NAMES: Final = ("metrics", "http-metrics", "http")
"""Names of container ports that usually have the metrics, in this order."""
_QUEUES: Final = tuple(
    formula
    for name in (WAITING, GATEWAY_WAITING)
    for formula in servedmetrics.CATALOG.metrics[name].formulas
)


class _Page(NamedTuple):
    """What the formulas ask of a page: which fields it has."""

    fields: Collection[str]
    mig: bool = False

    def value_of(self, field: str, what: Statistic) -> DeviceValue | None:
        """Return None: the numbers are not known."""

    def newest(self, field: str) -> DeviceValue | None:
        """A page of doctor has no values."""
        return None

    def reports(self, field: str) -> bool:
        """Return whether the page has the field."""
        return field in self.fields

    def is_incomplete(self, field: str) -> bool:
        """A page of doctor is read for the names of its series only."""
        return False


def _server(pod: SeenPod) -> ServerKind | None:
    """Return the inference server that a pod's image is; None for other pods."""
    images = (container.image for container in pod.spec.containers)
    return next(filter(None, map(serverkinds.kind_of_image, images)), None)


def _annotate(facts: Facts, pod: SeenPod, words: Mapping[str, object]) -> str | Fix:
    """Return how a pod's template, or a pod without a workload, gets annotations; None as a value
    removes one.
    """
    notes = {
        f"{PREFIX}{key}": None if value is None else str(value) for key, value in words.items()
    }
    of = workload_of(facts, pod)
    if of is not None:
        return make_lasting(of, annotate(of, notes))
    changes = " ".join(
        shlex.quote(f"{key}-" if value is None else f"{key}={value}")
        for key, value in notes.items()
    )
    name = shlex.quote(pod.pod.ref.name)
    return f"kubectl -n {pod.pod.ref.namespace} annotate pod {name} --overwrite {changes}"


def _port_of(pod: SeenPod, failed: int = 0) -> int:
    """Return the port that has the metrics most likely: one that the pod declares, if any.

    Args:
        failed: a port that does not answer; another one is preferred.
    """
    default = (_server(pod) or KINDS["vllm"]).port
    declared = [port for port in pod.pod.ports if port.port != failed]
    numbers = [port.port for port in declared]
    if not numbers or default in numbers:
        return default
    by_name = {port.name: port.port for port in declared}
    return next((by_name[name] for name in _PORT_NAMES if name in by_name), numbers[0])


def _opt_in(pod: SeenPod, rules: ServerPages) -> dict[str, object]:
    """Return the annotations that opt in: without what the adapter finds or assumes itself."""
    words: dict[str, object] = {"scrape": "true"}
    path = (_server(pod) or KINDS["vllm"]).path
    if path != rules.path and not words_under(pod.pod, PREFIX).get("path"):
        words["path"] = path
    if words_under(pod.pod, PREFIX).get("port"):
        return words
    declared = {port.port for port in pod.pod.ports}
    is_only_port = rules.port is None and len(declared) == 1
    if is_only_port or any(port.name in rules.port_names for port in pod.pod.ports):
        return words
    return words | {"port": _port_of(pod)}


@check(
    "GMA501", CheckSection.SERVERS, "inference servers opt in to being scraped", Severity.WARNING
)
def not_opted_in(facts: Facts) -> Iterator[Finding]:
    """A pod runs an inference server or a gateway, by the name of its image, and is not scraped, so
    its `inference_…` metrics have no value.

    Add the annotation `gpu-metrics-adapter.io/scrape: "true"` to the pod template, or `"false"` to
    do without (`docs/inference.md`).
    """
    rules = discovery.server_pages(facts.settings)
    if rules is None:
        kind = facts.settings.source.kind
        raise NotApplicableError(
            "source.scrape.inference.enabled is false"
            if kind == "scrape"
            else f"source.kind is {kind}: scrape jobs elsewhere read the servers' pages"
        )
    reported, asked_pods = set(), _asked_pods(facts)
    for pod in facts.pods.read():
        server = _server(pod)
        scrape = words_under(pod.pod, PREFIX).get("scrape")
        if server is None or scrape or not pod.runs or not pod.pod.ready:
            continue
        if rules.of(pod.pod) is not None or (pod.pod.ref.namespace, owner(pod)) in reported:
            continue
        reported.add((pod.pod.ref.namespace, owner(pod)))
        yield Finding(
            pod.subject,
            f"runs {server.title} and does not opt in: {server.queue} has no value",
            'annotate the pod template with gpu-metrics-adapter.io/scrape: "true"',
            _annotate(facts, pod, _opt_in(pod, rules)),
            effect=FindingEffect.CAUSE if pod.key in asked_pods else None,
        )


def _asked_pods(facts: Facts) -> frozenset[str]:
    """Return the pods of whose server an HPA asks a metric, as far as HPAs were read."""
    if not (facts.hpas.known and facts.workloads.known):
        return frozenset()
    names, keys = servedmetrics.metrics(facts.settings), set[str]()
    for hpa, metric in metrics(facts):
        if names[metric.name].scope is not Scope.DEVICE and (of := target_of(facts, hpa)):
            keys |= {pod.key for pod in pods_of(facts, of)}
    return frozenset(keys)


@check("GMA502", CheckSection.SERVERS, "the ports of server pages are right")
def wrong_port(facts: Facts) -> Iterator[Finding]:
    """A pod opts in, and the annotation names no port of the pod, or nothing listens there.

    Set `gpu-metrics-adapter.io/port` (`docs/inference.md` has the default port of each server).
    """
    rules = discovery.server_pages(facts.settings)
    for pod in facts.pods.read() if rules else ():
        target = rules.of(pod.pod) if rules else None
        if isinstance(target, Unscrapable):
            yield _port(facts, pod, target.message)
        elif target is not None and _is_undeclared(
            facts, pod, port := urlsplit(target.url).port or 80
        ):
            text = f"is scraped at port {port}, which is none of the ports that it declares"
            yield _port(facts, pod, text, port, Severity.WARNING)
    for pod, page in _troubled_pages(facts, Trouble.REFUSED, Trouble.TIMEOUT, Trouble.HTTPS):
        failed = urlsplit(f"//pod{page.url}").port or 0
        yield _port(facts, pod, f"its page at {page.url} does not answer: {page.detail}", failed)


def _is_undeclared(facts: Facts, pod: SeenPod, port: int) -> bool:
    """Return whether a page was not read, and its port is none of those that the pod declares."""
    page = (facts.server_pages.value or {}).get(pod.key)
    unread = page is None or page.trouble is Trouble.UNREAD
    declared = {row.port for row in pod.pod.ports}
    return unread and bool(declared) and port not in declared


def _port(
    facts: Facts, pod: SeenPod, message: str, failed: int = 0, severity: Severity | None = None
) -> Finding:
    return Finding(
        pod.subject,
        message,
        f"set the annotation {PREFIX}port to the port of the server's metrics",
        _annotate(facts, pod, {"port": _port_of(pod, failed)}),
        severity,
    )


def _troubled_pages(facts: Facts, *kinds: Trouble) -> Iterator[tuple[SeenPod, ExporterPage]]:
    return troubled_pages(facts, facts.pods.read(), facts.server_pages.read(), *kinds)


@check("GMA503", CheckSection.SERVERS, "the paths of server pages are right")
def wrong_path(facts: Facts) -> Iterator[Finding]:
    """A pod opts in, and its server answers with an HTTP error or HTML: the path is wrong, or the
    server's metrics are off.

    Set `gpu-metrics-adapter.io/path` (default `/metrics`). `docs/inference.md` has the path of each
    server, and the option that turns its metrics on.
    """
    for pod, page in _troubled_pages(facts, Trouble.STATUS, Trouble.HTML):
        detail, _, fix = page.detail.partition("; ")
        yield Finding(
            pod.subject,
            f"its page at {page.url} answers: {detail}",
            fix or f"set the annotation {PREFIX}path to the path of the server's metrics",
            _annotate(facts, pod, {"path": (_server(pod) or KINDS["vllm"]).path}),
        )


@check("GMA504", CheckSection.SERVERS, "server pages have their queue", Severity.WARNING)
def no_queue(facts: Facts) -> Iterator[Finding]:
    """A pod opts in, and its page has no queue that the adapter knows: the server is of another
    kind, its metrics are partly off, it writes its queue from the first request on
    (text-embeddings-inference), or it hands each request to its engine at once (Triton with vLLM).

    Turn the server's metrics on; for Triton with vLLM, set `REPORT_CUSTOM_METRICS` in the model's
    configuration. For another server, define a metric of your own (`metrics` in the settings).
    """
    pages = facts.server_pages.read()
    for pod in facts.pods.read():
        page = pages.get(pod.key)
        if page is None or page.trouble not in (None, Trouble.EMPTY):
            continue
        missing = _missing_queue(pod, page)
        if missing:
            yield Finding(
                pod.subject,
                f"its page at {page.url} {missing}",
                "turn the server's metrics on, or define a metric of your own in the settings",
                logs(pod),
            )


def _missing_queue(pod: SeenPod, page: ExporterPage) -> str:
    """Return why a page shows no queue, in words; empty if it shows one."""
    shown = next((queue for queue in _QUEUES if queue.is_exported(_Page(page.fields))), None)
    server = _server(pod)
    if shown is None:
        program = f": {page.detail}" if page.detail else ""
        return f"has no queue that the adapter knows{program}"
    own_fields = {field.name for kind in _schedulers(server) for field in kind.fields}
    if hides(shown) or (own_fields and not own_fields & page.fields):
        title = server.title if server is not None else "the server"
        return f"cannot show a queue: {title} hands each request to its engine at once"
    return ""


def _schedulers(server: ServerKind | None) -> Iterable[ServerKind]:
    """Return the kinds one of whose series a Triton must write to show the queue of its backend."""
    if server is None or not server.tag:
        return ()
    return (server, *(KINDS[name] for name in server.engines))


@check("GMA505", CheckSection.SERVERS, "pods that opt in are scraped", Severity.WARNING)
def disabled_scrapes(facts: Facts) -> Iterator[Finding]:
    """A pod opts in with `gpu-metrics-adapter.io/scrape: "true"`, and
    `source.scrape.inference.enabled` is false, `source.scrape.inference.namespaces` leaves its
    namespace out, or the source is Prometheus. Or its page has the address of another pod's, as
    with `hostNetwork`: one of them is scraped.

    Change the setting, give each pod its own port, or remove the annotation.
    """
    settings = facts.settings
    inference = settings.source.scrape.inference
    asking = [pod for pod in facts.pods.read() if pod.runs and has_opted_in(pod.pod)]
    yield from _one_address(facts, asking)
    for pod in asking:
        namespaces = inference.namespaces
        if settings.source.kind != "scrape":
            why = f"source.kind is {settings.source.kind}"
        elif not inference.enabled:
            why = "source.scrape.inference.enabled is false"
        elif namespaces and pod.pod.ref.namespace not in namespaces:
            why = "source.scrape.inference.namespaces does not list its namespace"
        else:
            continue
        yield Finding(
            pod.subject,
            f"opts in, and is not scraped: {why}",
            "change the setting, or remove the annotation",
            _annotate(facts, pod, {"scrape": None}),
        )


def _one_address(facts: Facts, asking: Iterable[SeenPod]) -> Iterator[Finding]:
    """Yield the pods whose page has the address of another pod's page."""
    rules = discovery.server_pages(facts.settings)
    by_url: dict[str, list[SeenPod]] = {}
    for pod in asking if rules else ():
        target = rules.of(pod.pod) if rules else None
        if target is not None and not isinstance(target, Unscrapable):
            by_url.setdefault(target.url, []).append(pod)
    for url, pods in by_url.items():
        for pod, other in zip(pods[1:], pods, strict=False):
            yield Finding(
                pod.subject,
                f"its page {url} is also that of pod {other.key}: one of them is not scraped",
                f"give each pod its own port, and name it in the annotation {PREFIX}port",
                f"kubectl -n {pod.pod.ref.namespace} get pods -o wide",
            )
