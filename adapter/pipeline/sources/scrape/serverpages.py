"""Decide which pods have a server page, such as inference servers, and its address.

A pod opts in by label or annotation, or the settings name a selector or port names. The page of
such a pod is trusted only about the pod itself, and no credential is ever sent to it, because
anyone who may create a pod may opt in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from adapter.pipeline.cluster.optin import PREFIX, says_yes, words_under
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.sources.scrape.pageaccess import DEFAULT, PageAccess
from adapter.pipeline.sources.scrape.pageaddress import Unscrapable, no_port, page_address
from adapter.pipeline.sources.scrape.target import Scheme, ScrapeTarget
from apiservice.labels.selector import Selector

WELL_KNOWN: Final = "prometheus.io/"
"""Prefix of the annotations that many Prometheus configurations use."""
RULE: Final = "inference"

MOST_PORTS: Final = 64
"""Ports that a pod may name: vLLM runs as many data-parallel ranks."""
_SPAN: Final = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class ServerPages:
    """Which pods have a server page that is scraped."""

    well_known: bool = False
    """Also follow ``prometheus.io/scrape``."""
    selector: Selector | None = None
    """Pods with these labels have a server page without opting in."""
    port_names: tuple[str, ...] = ()
    """Pods with a container port of such a name have a server page there."""
    port: int | None = None
    """The page's port if the pod does not name one; None means its only port."""
    path: str = "/metrics"
    scheme: Scheme = "http"
    access: PageAccess = DEFAULT
    """The trust in certificates."""
    namespaces: frozenset[str] = frozenset()
    """Only pods of these namespaces; empty means any."""
    unready: bool = False
    """Also scrape pods that are not Ready. A server that loads its model refuses connections."""

    def of(self, pod: Pod) -> ScrapeTarget | Unscrapable | None:
        """Return the pod's first page; None if it has none or cannot be scraped now."""
        targets = self.all_of(pod)
        return targets if isinstance(targets, Unscrapable) else next(iter(targets), None)

    def all_of(self, pod: Pod) -> Sequence[ScrapeTarget] | Unscrapable:
        """Return the pages of the pod's servers, one for each port that it names.

        Empty if it has none or cannot be scraped now.
        """
        words = self._words(pod)
        if words is None:
            return ()
        pages: list[ScrapeTarget] = []
        for port in _parse_ports(words.get("port", "")):
            page = self._page(pod, {**words, "port": port})
            if isinstance(page, Unscrapable):
                return page
            pages.append(page)
        if len(pages) > MOST_PORTS:
            return Unscrapable("bad_port", f"more than {MOST_PORTS} ports: name fewer")
        return pages

    def _words(self, pod: Pod) -> Mapping[str, str] | None:
        """Return what the pod says about its pages; None if no page of it is read now."""
        if pod.phase != "Running" or pod.deleting or not pod.ip:
            return None
        if not pod.ready and not self.unready:
            return None
        if self.namespaces and pod.ref.namespace not in self.namespaces:
            return None
        words = next(self._opt_ins(pod), None)
        return {} if words is None and self._is_selected(pod) else words

    def _opt_ins(self, pod: Pod) -> Iterator[Mapping[str, str]]:
        prefixes = (PREFIX, WELL_KNOWN) if self.well_known else (PREFIX,)
        for prefix in prefixes:
            words = words_under(pod, prefix)
            if says_yes(words):
                yield words

    def _is_selected(self, pod: Pod) -> bool:
        if words_under(pod, PREFIX).get("scrape"):
            return False  # the pod opts out
        if self.selector is not None:
            return self.selector.matches(pod.labels)
        return any(port.name in self.port_names for port in pod.ports)

    def _page(self, pod: Pod, words: Mapping[str, str]) -> ScrapeTarget | Unscrapable:
        address = page_address(
            pod,
            words,
            scheme=self.scheme,
            port=self._port(pod),
            path=self.path,
            access=self.access,
        )
        if isinstance(address, Unscrapable):
            return address
        return ScrapeTarget(
            address.url, pod.node, pod.ref, pod.uid, RULE, serves=True, access=address.access
        )

    def _port(self, pod: Pod) -> int | Unscrapable:
        ports = [port.port for port in pod.ports if port.name in self.port_names]
        if ports or self.port is not None:
            return ports[0] if ports else self.port or 0
        return pod.ports[0].port if len(pod.ports) == 1 else no_port(pod)


def _parse_ports(text: str) -> Iterator[str]:
    """Yield each port of a list such as ``8000,8002-8004``; what is not a range as it is written.

    At most one more than are allowed.
    """
    for part in islice(text.split(","), MOST_PORTS + 1):
        span = _SPAN.fullmatch(part.strip())
        first, last = (int(span[1]), int(span[2])) if span is not None else (1, 0)
        if first > last:
            yield part.strip() or text  # an empty part is wrong, unless nothing is said
        yield from map(str, range(first, min(last, first + MOST_PORTS) + 1))
