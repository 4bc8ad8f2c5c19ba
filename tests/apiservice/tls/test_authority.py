"""Certificates of our CA (``serve``, ``maintain``, the demo) keep the forms of RFC 5280."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from apiservice.tls.authority import new_authority, read_authority
from tests.apiservice.pki import shake_hands, strict

LONG = f"{'metrics' * 9}.{'namespace' * 6}.svc"
"""Longer than a common name may be."""


@pytest.mark.parametrize("names", [("gpu.monitoring.svc", "127.0.0.1"), ("127.0.0.1",), (LONG,)])
@pytest.mark.parametrize("read_again", [False, True])
def test_a_strict_client_accepts_what_our_ca_issues(
    names: tuple[str, ...], read_again: bool, tmp_path: Path
) -> None:
    now = time.time()
    authority = new_authority(now, days=30)
    if read_again:  # as maintain does, at each renewal
        authority = read_authority(authority.certificate_pem, authority.key_pem)
    client = strict(ssl.create_default_context(cadata=authority.certificate_pem.decode()))
    issued = authority.issue(names, now, days=1)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.key)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate, key)
    for name in names:
        shake_hands(client, server, name)
