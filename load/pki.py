"""Certificates of one benchmark run: a serving pair and the front proxy's client pair."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

from apiservice.runtime.servertrust import client_context

FRONT_PROXY = "front-proxy-client"
USER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
"""Who asks: the HPA controller."""
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")


@dataclass(frozen=True, slots=True)
class Pki:
    """Files, all PEM."""

    ca: Path
    """Signed both the serving certificate and the front proxy's."""
    cert: Path
    key: Path
    client_cert: Path
    client_key: Path

    def client_context(self) -> ssl.SSLContext:
        """As the front proxy: presents its certificate, checks the server's."""
        context = client_context(self.ca)
        context.load_cert_chain(self.client_cert, self.client_key)
        return context


def issue(folder: Path) -> Pki:
    """Make a CA and both pairs (ECDSA P-256) in ``folder``."""
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    client = authority.issue_cert(FRONT_PROXY, common_name=FRONT_PROXY)
    pki = Pki(*(folder / f"{name}.pem" for name in ("ca", "tls", "tls-key", "proxy", "proxy-key")))
    authority.cert_pem.write_to_path(str(pki.ca))
    for leaf, cert, key in (
        (server, pki.cert, pki.key),
        (client, pki.client_cert, pki.client_key),
    ):
        leaf.cert_chain_pems[0].write_to_path(str(cert))
        leaf.private_key_pem.write_to_path(str(key))
    return pki
