"""Decide which pods have a server page, such as inference servers, and its address.

A pod opts in by label or annotation, or the settings name a selector or port names. The page of
such a pod is trusted only about the pod itself, and no credential is ever sent to it, because
anyone who may create a pod may opt in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.cluster.optin import PREFIX, says_yes, words_under
from adapter.cluster.pod import Pod
from adapter.sources.scrape.pageaccess import DEFAULT, PageAccess
from adapter.sources.scrape.pageaddress import Unscrapable, no_port, page_address
from adapter.sources.scrape.target import Scheme, ScrapeTarget
from apiservice.labels.selector import Selector

WELL_KNOWN: Final = "prometheus.io/"
"""Prefix of the annotations that many Prometheus configurations use."""
RULE: Final = "inference"


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
        """Return the pod's page; None if it has none or cannot be scraped now."""
        if pod.phase != "Running" or pod.deleting or not pod.ip:
            return None
        if not pod.ready and not self.unready:
            return None
        if self.namespaces and pod.ref.namespace not in self.namespaces:
            return None
        words = next(self._asked(pod), None)
        if words is None and not self._selected(pod):
            return None
        return self._page(pod, words or {})

    def _asked(self, pod: Pod) -> Iterator[Mapping[str, str]]:
        prefixes = (PREFIX, WELL_KNOWN) if self.well_known else (PREFIX,)
        for prefix in prefixes:
            words = words_under(pod, prefix)
            if says_yes(words):
                yield words

    def _selected(self, pod: Pod) -> bool:
        if words_under(pod, PREFIX).get("scrape"):
            return False  # the pod opts out
        if self.selector is not None:
            return self.selector.matches(pod.labels)
        return any(port.name in self.port_names for port in pod.ports)

    def _page(self, pod: Pod, words: Mapping[str, str]) -> ScrapeTarget | Unscrapable:
        found = page_address(
            pod,
            words,
            scheme=self.scheme,
            port=self._port(pod),
            path=self.path,
            access=self.access,
        )
        if isinstance(found, Unscrapable):
            return found
        return ScrapeTarget(
            found.url, pod.node, pod.ref, pod.uid, RULE, serves=True, access=found.access
        )

    def _port(self, pod: Pod) -> int | Unscrapable:
        named = [port.port for port in pod.ports if port.name in self.port_names]
        if named or self.port is not None:
            return named[0] if named else self.port or 0
        return pod.ports[0].port if len(pod.ports) == 1 else no_port(pod)
