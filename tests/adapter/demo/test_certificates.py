"""The demo's front proxy has an identity as a cluster's has."""

from __future__ import annotations

import datetime
import ssl
import stat
import time
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.demo.certificates import make_front_proxy
from apiservice.tls.authority import new_authority
from tests.apiservice.pki import shake_hands, strict

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def test_the_client_certificate_chains_to_the_ca_and_is_for_clients(tmp_path: Path) -> None:
    files = make_front_proxy(tmp_path, NOW.timestamp())
    ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
    client = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    client.verify_directly_issued_by(ca)
    (name,) = client.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == "front-proxy-client"
    usage = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert client.not_valid_before_utc < NOW < client.not_valid_after_utc


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    files = make_front_proxy(tmp_path, NOW.timestamp())
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600


def test_a_strict_server_accepts_the_front_proxy_of_the_demo(tmp_path: Path) -> None:
    now = time.time()
    proxy, authority = make_front_proxy(tmp_path, now), new_authority(now, days=1)
    issued = authority.issue(["localhost"], now, days=1)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.key)
    server = strict(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=proxy.ca))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(certificate, key)
    client = strict(ssl.create_default_context(cadata=authority.certificate_pem.decode()))
    client.load_cert_chain(proxy.certificate, proxy.key)
    shake_hands(client, server, "localhost")
