"""What ``serve`` says before a certificate ends, and after it has.

A certificate that ends takes every answer away at one moment, and nothing else shows it before.
That holds for those that clients check, and for those that ``serve`` checks: the API server's own,
which it shows on its connections, and the CAs of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

import structlog
from cryptography import x509

from adapter.server.serve.security import Security
from apiservice.http.server import Server
from apiservice.runtime.validity import Validity, validity_of
from apiservice.wire import instant

log = structlog.get_logger(__name__)

_SOON: Final = 0.1
"""Share of its life below which a certificate ends soon. What renews certificates does so with a
third of their life left: ``maintain``, cert-manager's default, and the self-signed certificate."""

AFTERWARDS: Final = {
    "serving": "the API server refuses this process; see what renews the certificate",
    "keda": "KEDA refuses this process; renew the files of keda.tls",
    "front-proxy": (
        "the API server's requests are refused; renew its --proxy-client-cert-file, with kubeadm: "
        "kubeadm certs renew front-proxy-client"
    ),
    "front-proxy-ca": (
        "the API server's requests are refused; replace the front-proxy CA on the control plane"
    ),
    "client-ca": "clients with a certificate are refused; replace the cluster's CA",
}
"""Certificate -> what its end means, and the fix."""


class _Dated(Protocol):
    @property
    def validity(self) -> Validity | None: ...


class Lifetimes:
    """The dates of the certificates in use, by their names in ``AFTERWARDS``.

    Args:
        sources: return the dates of what is in use at the moment, possibly of several.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Iterable[Validity]]]) -> None:
        self._sources = sources
        self._logged: dict[str, tuple[Validity, bool]] = {}

    def soonest(self) -> dict[str, Validity]:
        """Return the dates of the certificate of each name that ends first."""
        dates = {name: list(source()) for name, source in self._sources.items()}
        return {
            name: min(rows, key=lambda validity: validity.ends)
            for name, rows in dates.items()
            if rows
        }

    def look(self, now: float) -> None:
        """Log once that a certificate ends soon, and once that it has ended."""
        for name, validity in self.soonest().items():
            ended = now >= validity.ends
            if validity.remaining_share(now) >= _SOON or self._logged.get(name) == (
                validity,
                ended,
            ):
                continue
            self._logged[name] = (validity, ended)
            say = log.error if ended else log.warning
            say(
                "certificate has expired" if ended else "certificate expires soon",
                certificate=name,
                expires=instant.minute(validity.ends),
                then=AFTERWARDS[name],
            )


def certificate_lifetimes(security: Security, server: Server, keda: _Dated | None) -> Lifetimes:
    """Return the lifetimes of what ``serve`` shows and trusts, and of the front proxies' own."""
    trust = security.trust
    return Lifetimes(
        {
            "serving": lambda: [security.tls.validity],
            "keda": lambda: [keda.validity] if keda is not None and keda.validity else [],
            "front-proxy": lambda: _of_proxies(server),
            "front-proxy-ca": lambda: [trust.proxy[1].validity] if trust.proxy else [],
            "client-ca": lambda: [trust.clients.validity] if trust.clients else [],
        }
    )


def _of_proxies(server: Server) -> Iterator[Validity]:
    """Yield the dates of what the connected front proxies showed."""
    for leaf in {peer.chain[0] for peer in server.proxies}:
        yield validity_of(x509.load_der_x509_certificate(leaf))
