"""Read the pages of exporters, of inference servers, and of the adapter itself."""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from adapter.config.settings import discovery
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.sources.scrape.discovery import DiscoveryRule, select_exporters
from adapter.pipeline.sources.scrape.largepages import MOST_BYTES
from adapter.pipeline.sources.scrape.refusal import READ, refusal
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.facts import Facts, SelfPage, UnreadError
from adapter.tools.doctor.fetch import DirectFetcher, Fetched, Fetcher, Place, speaks_tls
from adapter.tools.doctor.page import ExporterPage, Trouble, reduce_page
from adapter.tools.doctor.release import Release, helm_test
from apiservice.runtime.servertrust import client_context

MOST_PAGES: Final = 500
"""Pages of one kind that are read."""
_AT_ONCE: Final = 16
_SELF_BYTES: Final = 4 << 20


def exporters(facts: Facts) -> list[tuple[SeenPod, DiscoveryRule]]:
    """Return the unfinished pods of exporters, with the rule that finds them."""
    facts.pods.read()
    return facts.once(_exporters, facts.pods, facts.release)


def _exporters(facts: Facts) -> list[tuple[SeenPod, DiscoveryRule]]:
    rules = discovery.exporter_rules(facts.settings)
    pairs = []
    for pod in facts.pods.read():
        rule = next((rule for rule in rules if rule.matches(pod.pod)), None)
        if rule is not None and not pod.pod.finished:
            pairs.append((pod, rule))
    return pairs


async def exporter_pages(
    fetcher: Fetcher, facts: Facts, notes: list[str]
) -> Mapping[str, ExporterPage]:
    """Read the pages that the adapter scrapes; raises ClientError without the right."""
    pods = [pod for pod, _ in exporters(facts)]
    by_ref = select_exporters((pod.pod for pod in pods), discovery.exporter_rules(facts.settings))
    targets = [(pod, target) for pod in pods if (target := by_ref.get(pod.pod.ref)) is not None]
    most = facts.settings.source.scrape.max_bytes
    token = facts.settings.source.scrape.bearer_token_file is not None
    return await _pages(fetcher, targets, most, facts.now, notes, "exporters", credentials=token)


async def server_pages(
    fetcher: Fetcher, facts: Facts, notes: list[str]
) -> Mapping[str, ExporterPage]:
    """Read the page of every inference server; raises ClientError without the right."""
    servers = discovery.server_pages(facts.settings)
    rules = discovery.exporter_rules(facts.settings)
    targets = []
    for pod in facts.pods.read() if servers else ():
        target = servers.of(pod.pod) if servers else None
        if isinstance(target, ScrapeTarget) and not any(rule.matches(pod.pod) for rule in rules):
            targets.append((pod, target))  # of several ports, the first
    most = max(facts.settings.source.scrape.inference.max_bytes, MOST_BYTES)
    return await _pages(fetcher, targets, most, facts.now, notes, "server pages")


async def _pages(
    fetcher: Fetcher,
    targets: Sequence[tuple[SeenPod, ScrapeTarget]],
    most: int,
    now: float,
    notes: list[str],
    what: str,
    *,
    credentials: bool = False,
) -> Mapping[str, ExporterPage]:
    """Read pages.

    Args:
        fetcher: reads them.
        targets: the pods and their pages.
        most: bytes of a page.
        now: epoch seconds.
        notes: gets a note if some are not read.
        what: the kind of pages, for the note.
        credentials: whether the adapter sends credentials to each of them; doctor has none.
    """
    if len(targets) > MOST_PAGES:
        notes.append(f"only {MOST_PAGES} of {len(targets)} {what} were read")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read_page(pod: SeenPod, at: ScrapeTarget) -> ExporterPage:
        async with gate:
            return await _page(fetcher, pod, at, most, now, credentials=credentials)

    pages = await asyncio.gather(*(read_page(pod, target) for pod, target in targets[:MOST_PAGES]))
    return {page.pod: page for page in pages}


async def _page(
    fetcher: Fetcher,
    pod: SeenPod,
    at: ScrapeTarget,
    most: int,
    now: float,
    *,
    credentials: bool,
) -> ExporterPage:
    place = Place("pods", pod.pod.ref.namespace, pod.pod.ref.name, at.url)
    proxy = "" if place.strays else place.proxy
    blank = ExporterPage(pod.key, pod.pod.node, at.rule, place.brief, proxy=proxy)
    answer = await fetcher.fetch(place, most)
    if await speaks_tls(fetcher, place, answer):
        return replace(blank, trouble=Trouble.HTTPS, detail="it expects TLS")
    trouble = _trouble(answer, most, at, credentials=credentials or at.access.authenticates)
    if trouble is not None:
        return replace(blank, trouble=trouble[0], detail=trouble[1])
    return reduce_page(answer.body, blank, now=now)


def _trouble(
    answer: Fetched, most: int, at: ScrapeTarget, *, credentials: bool
) -> tuple[Trouble, str] | None:
    if answer.unread:
        return Trouble.UNREAD, answer.error
    if answer.status == 0:
        late = "time" in answer.error
        return (Trouble.TIMEOUT if late else Trouble.REFUSED), answer.error
    if answer.status in (401, 403) and credentials and not at.access.withheld:
        return Trouble.UNREAD, "its page needs credentials, which doctor does not have"
    if answer.status != 200:
        return Trouble.STATUS, str(refusal(at, answer.status, "", answer.body[:READ], ""))
    if not answer.complete:
        return Trouble.TOO_LARGE, f"its page is larger than {most} bytes"
    return None


async def self_pages(
    direct: DirectFetcher | None, fetcher: Fetcher, facts: Facts, release: Release
) -> Sequence[SelfPage]:
    """Read the adapter's own metrics from each replica.

    Raises:
        UnreadError: a client outside the cluster cannot authenticate to a pod.
    """
    pages = []
    for pod in release.pods:
        if not pod.runs or not pod.pod.ready:
            continue
        port = next((p.port for p in pod.pod.ports if p.name == "https"), 8443)
        url = f"https://{pod.pod.ip}:{port}/metrics"
        place = Place("pods", pod.pod.ref.namespace, pod.pod.ref.name, url)
        answer = await _fetch_own_page(direct, fetcher, place, facts, release)
        if answer.status != 200:
            raise _closed_error(release, answer)
        pages.append(SelfPage(pod.pod.ref.name, _samples(answer.body)))
    return pages


async def _fetch_own_page(
    direct: DirectFetcher | None, fetcher: Fetcher, place: Place, facts: Facts, release: Release
) -> Fetched:
    if direct is None:
        try:
            return await fetcher.fetch(place, _SELF_BYTES)
        except ClientError as error:
            return Fetched(403, b"", error=error.brief)
    context, host = _trust(facts, release)
    token = _TOKEN.read_text().strip() if context and _TOKEN.is_file() else ""
    return await direct.read(place.url, _SELF_BYTES, token=token, context=context, host=host)


_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def _trust(facts: Facts, release: Release) -> tuple[ssl.SSLContext | None, str]:
    """Return the trust in the adapter's certificate: its CA is in its APIService."""
    for apiservice in facts.apiservices.value or ():
        service = apiservice.spec.service
        ours = service and service.namespace == release.workload.metadata.namespace
        if ours and service and apiservice.spec.ca_bundle:
            try:
                pem = b64decode(apiservice.spec.ca_bundle).decode("ascii")
                context = client_context(ca_data=pem)
            except (ValueError, ssl.SSLError):
                continue
            return context, f"{service.name}.{service.namespace}.svc"
    return None, ""


def _closed_error(release: Release, answer: Fetched) -> UnreadError:
    problem = answer.error or f"status {answer.status}"
    return UnreadError(
        f"the adapter's own metrics are for authenticated clients in the cluster ({problem})",
        helm_test(release.workload),
        inside=True,
    )


def _samples(body: bytes) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    page = parse(body, time=time.time(), wanted=_OWN)
    return {(row.name, tuple(sorted(row.labels.items()))): row.value for row in page.samples}


class _Own:
    """The names of series that are read from the adapter's own page."""

    def __contains__(self, name: object) -> bool:
        return str(name).startswith(("gma_", "process_"))


_OWN: Final = _Own()
