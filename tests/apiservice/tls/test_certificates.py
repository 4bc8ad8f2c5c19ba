"""Serving certificates: judged before use, and made where none is given."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiservice.tls.certificates import CertificateFiles, CertificatePairError, read_pair
from apiservice.tls.selfsigned import SelfSigned
from tests.apiservice.pki import HOUR, SERVER, Authority, on_another_curve

NOW = 1_800_000_000.0
DAY = 86400.0
CA = Authority("ca", NOW)
GOOD = CA.server("localhost", "127.0.0.1", "::1")
OTHER = CA.server("localhost")
NAMES = ("adapter.gpu-metrics.svc", "localhost", "127.0.0.1", "::1")


def encrypted(key: bytes) -> bytes:
    secret = serialization.BestAvailableEncryption(b"secret")
    loaded = serialization.load_pem_private_key(key, None)
    return loaded.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret
    )


def test_a_good_pair_has_its_names_and_dates(tmp_path: Path) -> None:
    pair = read_pair(CertificateFiles(*GOOD.write(tmp_path, "tls")), NOW)

    assert pair.names == {"localhost", "127.0.0.1", "::1"}
    assert pair.validity.ends == NOW + HOUR
    assert pair.covers(["LOCALHOST", "0:0:0:0:0:0:0:1"])
    assert not pair.covers(["elsewhere"])


BAD: dict[str, tuple[bytes | None, bytes | None, str, str]] = {
    "no certificate": (None, GOOD.key_pem, "tls.crt", "No such file"),
    "no key": (GOOD.pem, None, "tls.key", "No such file"),
    "an empty certificate": (b"", GOOD.key_pem, "tls.crt", "BEGIN CERTIFICATE"),
    "a cut certificate": (GOOD.pem[:200], GOOD.key_pem, "tls.crt", "BEGIN CERTIFICATE"),
    "key and certificate exchanged": (GOOD.key_pem, GOOD.pem, "tls.crt", "BEGIN CERTIFICATE"),
    "a key that is none": (GOOD.pem, b"nonsense", "tls.key", "BEGIN PRIVATE KEY"),
    "another certificate's key": (GOOD.pem, OTHER.key_pem, "tls.key", "do not belong together"),
    "an encrypted key": (GOOD.pem, encrypted(GOOD.key_pem), "tls.key", "openssl pkey"),
    "an expired certificate": (
        (expired := CA.server("localhost", ends=-1)).pem,
        expired.key_pem,
        "tls.crt",
        "expired on 2027-01-15 07:59 UTC",
    ),
    "a certificate on an unknown curve": (
        on_another_curve(GOOD.pem),
        GOOD.key_pem,
        "tls.crt",
        "P-256",
    ),
    "a key on an unknown curve": (GOOD.pem, on_another_curve(GOOD.key_pem), "tls.key", "P-256"),
    "a curve that Go's TLS does not know": (
        (odd := CA.issue("localhost", usage=SERVER, curve=ec.SECP256K1())).pem,
        odd.key_pem,
        "tls.crt",
        "does not accept a key on curve secp256k1",
    ),
    "an address of no bytes among the names": (
        (nameless := CA.issue("localhost", usage=SERVER, raw_names=b"\x30\x02\x87\x00")).pem,
        nameless.key_pem,
        "tls.crt",
        "valid names",
    ),
    "names that are not a list": (
        (garbled := CA.issue("localhost", usage=SERVER, raw_names=b"\xff")).pem,
        garbled.key_pem,
        "tls.crt",
        "valid names",
    ),
    "a certificate of tomorrow": (
        (early := CA.issue("localhost", starts=DAY, ends=2 * DAY)).pem,
        early.key_pem,
        "tls.crt",
        "clock",
    ),
}


@pytest.mark.parametrize(("cert", "key", "file", "hint"), BAD.values(), ids=BAD.keys())
def test_a_bad_pair_is_an_error_that_names_the_file_and_the_fix(
    tmp_path: Path, cert: bytes | None, key: bytes | None, file: str, hint: str
) -> None:
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    for path, content in ((files.certificate, cert), (files.key, key)):
        if content is not None:
            path.write_bytes(content)

    with pytest.raises(CertificatePairError, match=hint) as caught:
        read_pair(files, NOW)

    assert str(tmp_path / file) in str(caught.value)


def test_a_certificate_is_made_for_every_name(tmp_path: Path) -> None:
    source = SelfSigned(tmp_path / "deep" / "folder", NAMES)

    made = source.ensure(NOW)

    assert made.covers(NAMES)
    assert made.validity.ends == NOW + 365 * DAY
    leaf = x509.load_pem_x509_certificate(source.files.certificate.read_bytes())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(source.ca.read_bytes()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(source.files.certificate, source.files.key)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    SelfSigned(tmp_path, NAMES).ensure(NOW)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}


def test_a_certificate_that_serves_is_kept(tmp_path: Path) -> None:
    source = SelfSigned(tmp_path, NAMES)
    source.ensure(NOW)
    before = contents(tmp_path)

    source.ensure(NOW + 200 * DAY)

    assert contents(tmp_path) == before


def without_key(source: SelfSigned) -> tuple[SelfSigned, float]:
    source.files.key.unlink()
    return source, NOW


def with_cut_certificate(source: SelfSigned) -> tuple[SelfSigned, float]:
    source.files.certificate.write_bytes(b"-----B")
    return source, NOW


RENEWED: dict[str, Callable[[SelfSigned], tuple[SelfSigned, float]]] = {
    "less than a third of its life left": lambda s: (s, NOW + 250 * DAY),
    "expired long ago": lambda s: (s, NOW + 500 * DAY),
    "other names": lambda s: (SelfSigned(s.folder, (*NAMES, "new.svc")), NOW),
    "the key is gone": without_key,
    "the certificate is cut": with_cut_certificate,
}


@pytest.mark.parametrize("change", RENEWED.values(), ids=RENEWED.keys())
def test_a_renewed_certificate_needs_no_new_bundle(
    tmp_path: Path, change: Callable[[SelfSigned], tuple[SelfSigned, float]]
) -> None:
    source = SelfSigned(tmp_path, NAMES)
    source.ensure(NOW)
    bundle, key = source.ca.read_bytes(), source.files.key.read_bytes()
    source, now = change(source)

    made = source.ensure(now)

    assert made.covers(source.names)
    assert source.ca.read_bytes() == bundle
    assert source.files.key.read_bytes() != key


@pytest.mark.parametrize("spoiled", ["ca.crt", "ca.key"])
def test_a_lost_ca_is_created_again_with_its_certificate(tmp_path: Path, spoiled: str) -> None:
    source = SelfSigned(tmp_path, NAMES)
    source.ensure(NOW)
    before = contents(tmp_path)
    (tmp_path / spoiled).write_bytes(b"nonsense")

    source.ensure(NOW)

    assert not set(before.values()) & set(contents(tmp_path).values())


def test_a_ca_near_its_end_is_replaced(tmp_path: Path) -> None:
    source = SelfSigned(tmp_path, NAMES)
    source.ensure(NOW)
    bundle = source.ca.read_bytes()

    source.ensure(NOW + 3400 * DAY)

    assert source.ca.read_bytes() != bundle


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    source = SelfSigned(tmp_path / "file" / "below", NAMES)

    with pytest.raises(CertificatePairError, match="give a certificate and key") as caught:
        source.ensure(NOW)

    assert str(source.folder) in str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
