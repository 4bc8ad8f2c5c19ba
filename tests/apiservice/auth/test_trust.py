"""Which client certificates a CA bundle vouches for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiservice.auth.trust import CertificateError, ClientTrust, TrustError
from tests.apiservice.pki import HOUR, SERVER, Authority, Issued

NOW = 1_800_000_000.0
CA = Authority("front-proxy-ca", NOW)
TWIN = Authority("front-proxy-ca", NOW)
INTERMEDIATE = Authority("intermediate", NOW, signer=CA)
ANY = (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)
TRUST = ClientTrust(CA.pem)


def test_a_front_proxy_certificate_without_alternative_names_is_accepted() -> None:
    verified = TRUST.verify(CA.issue("front-proxy-client", groups=("a", "b")).der, NOW)

    assert verified.common_name == "front-proxy-client"
    assert verified.organizations == ("a", "b")


ACCEPTED: dict[str, Callable[[], Issued]] = {
    "through an intermediate that the client sends": lambda: INTERMEDIATE.issue("x"),
    "no common name": lambda: CA.issue(""),
    "a comma and a quote in the name": lambda: CA.issue('a,"b'),
}


@pytest.mark.parametrize("issue", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(issue: Callable[[], Issued]) -> None:
    assert TRUST.verify(issue().der, NOW)


def _under_a_leaf() -> Issued:
    leaf = CA.issue("y")
    forged = Authority("y", NOW)
    forged.key, forged.certificate = leaf.key, leaf.certificate
    issued = forged.issue("system:masters")
    return Issued(issued.certificate, issued.key, (leaf.certificate,))


REFUSED: dict[str, tuple[Callable[[], Issued], str]] = {
    "of another CA of the same name": (lambda: TWIN.issue("x"), "signature"),
    "expired": (lambda: CA.issue("x", ends=-1), "not valid at validation time"),
    "not valid yet": (lambda: CA.issue("x", starts=60), "not valid at validation time"),
    "for servers only": (lambda: CA.issue("x", usage=SERVER), "clientAuth"),
    "for any usage, which OpenSSL refuses in the handshake": (
        lambda: CA.issue("x", usage=ANY),
        "clientAuth",
    ),
    "without an extended key usage": (lambda: CA.issue("x", usage=None), "missing required"),
    "its intermediate is not sent": (
        lambda: Issued(INTERMEDIATE.issue("x").certificate, CA.key),
        "candidates exhausted",
    ),
    "its issuer is a client, not a CA": (_under_a_leaf, "candidates exhausted"),
}


@pytest.mark.parametrize(("issue", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(issue: Callable[[], Issued], why: str) -> None:
    with pytest.raises(CertificateError, match=why):
        TRUST.verify(issue().der, NOW)


def test_what_is_not_a_certificate_is_refused() -> None:
    with pytest.raises(CertificateError, match="unreadable"):
        TRUST.verify((b"\x30\x03\x02\x01\x00",), NOW)


def test_a_long_chain_is_refused_unread() -> None:
    leaf = CA.issue("x")

    with pytest.raises(CertificateError, match="9 certificates"):
        TRUST.verify(leaf.der * 9, NOW)


def test_trust_ends_with_the_first_expiry_in_the_chain() -> None:
    short = TRUST.verify(CA.issue("x", ends=60).der, NOW)
    long = TRUST.verify(CA.issue("x", ends=1000 * HOUR).der, NOW)

    assert short.valid_until == NOW + 60
    assert long.valid_until == NOW + 24 * HOUR  # the CA's own


def test_a_bundle_may_hold_several_cas() -> None:
    both = ClientTrust(TWIN.pem + CA.pem)

    assert both.verify(CA.issue("x").der, NOW)
    assert both.verify(TWIN.issue("x").der, NOW)


@pytest.mark.parametrize(
    "pem", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_bundle_without_certificates_says_so(pem: bytes) -> None:
    with pytest.raises(TrustError, match="PEM"):
        ClientTrust(pem)


def test_the_kit_makes_what_it_says() -> None:
    issued = CA.issue("x", hosts=("a.example", "127.0.0.1"))
    extension = issued.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)

    assert extension.value.get_values_for_type(x509.DNSName) == ["a.example"]
