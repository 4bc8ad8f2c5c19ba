"""The demo's front proxy has an identity as a cluster's has."""

from __future__ import annotations

import datetime
import stat
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.demo.certificates import make_front_proxy

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
