"""A serving certificate and the CAs of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.tls.certificates import CertificateFiles
from tests.apiservice.tls.serving import (
    CA,
    CLIENT_CA,
    PROXY_CA,
)


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(*CA.server("localhost").write(tmp_path, "tls"))


@pytest.fixture
def trust() -> ClientAuth:
    trust = ClientAuth()
    trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    trust.set_clients(CLIENT_CA.pem)
    return trust
