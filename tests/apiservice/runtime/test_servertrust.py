"""What a client accepts and refuses of a server's certificate; CA flags alike on every Python."""

from __future__ import annotations

import ast
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apiservice.runtime.servertrust import certificate_fix, client_context
from tests.apiservice.pki import (
    CLIENT,
    SERVER,
    Authority,
    Issued,
    server_context,
    shake_hands,
    strict,
)

ROOT = Path(__file__).parents[3]
HOST = "exporter.gpu.svc"
Made = tuple[str, Issued]
"""The PEM text that the client trusts, and what the server shows."""


@pytest.fixture(params=["as this Python does", "strict"])
def defaults(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default contexts of this Python, and of one that verifies strictly, as 3.13 does."""
    if request.param == "strict":
        default = ssl.create_default_context

        monkeypatch.setattr(
            ssl, "create_default_context", lambda *given, **named: strict(default(*given, **named))
        )


def connect(trusted: str, shown: Issued, folder: Path) -> None:
    """Shake hands in memory; raises SSLCertVerificationError."""
    shake_hands(client_context(ca_data=trusted), server_context(shown, folder), HOST)


def valid() -> Authority:
    return Authority("ca", time.time())


def well_formed() -> Made:
    ca = valid()
    return ca.pem.decode(), ca.server(HOST)


def old() -> Made:
    ca = Authority("ca", time.time(), old=True)
    return ca.pem.decode(), ca.server(HOST)


def intermediate_alone() -> Made:
    ca = Authority("intermediate", time.time(), signer=valid())
    return ca.pem.decode(), ca.server(HOST)


ACCEPTED: dict[str, Callable[[], Made]] = {
    "the forms of RFC 5280": well_formed,
    "no key usage, no key identifiers, no subject": old,
    "an intermediate CA without its root": intermediate_alone,
}


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
def test_what_go_programs_accept_is_accepted(make: Callable[[], Made], tmp_path: Path) -> None:
    connect(*make(), tmp_path)


def another_ca() -> Made:
    return valid().pem.decode(), valid().server(HOST)


def expired() -> Made:
    ca = valid()
    return ca.pem.decode(), ca.issue(HOST, usage=SERVER, hosts=(HOST,), ends=-60.0)


def early() -> Made:
    ca = valid()
    return ca.pem.decode(), ca.issue(HOST, usage=SERVER, hosts=(HOST,), starts=1800.0)


def another_name() -> Made:
    ca = valid()
    return ca.pem.decode(), ca.server("other.gpu.svc")


def for_clients() -> Made:
    ca = valid()
    return ca.pem.decode(), ca.issue(HOST, usage=CLIENT, hosts=(HOST,))


def by_no_ca() -> Made:
    """A certificate that a server's certificate signed."""
    ca = valid()
    leaf = ca.server("attacker.gpu.svc")
    forger = valid()
    forger.key, forger.certificate = leaf.key, leaf.certificate
    forged = forger.server(HOST)
    return ca.pem.decode(), Issued(forged.certificate, forged.key, (leaf.certificate,))


REFUSED: dict[str, tuple[Callable[[], Made], str, str]] = {
    "another CA": (another_ca, "certificate", "set ca_file to the CA"),
    "expired": (expired, "has expired", "renew the server's certificate"),
    "early": (early, "not yet valid", "check this machine's clock"),
    "another name": (another_name, "ostname mismatch", "use a name that is in"),
    "for clients": (for_clients, "purpose", "for server authentication"),
    "signed by no CA": (by_no_ca, "invalid CA certificate", "CA:TRUE"),
}


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize(("make", "flaw", "fix"), REFUSED.values(), ids=REFUSED)
def test_what_makes_it_untrustworthy_is_refused_with_the_fix(
    make: Callable[[], Made], flaw: str, fix: str, tmp_path: Path
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        connect(*make(), tmp_path)
    assert flaw in str(caught.value)
    assert fix in certificate_fix(str(caught.value), "ca_file")


@pytest.mark.parametrize(
    ("flaw", "fix"),
    [
        ("IP address mismatch, certificate is not valid for '10.0.0.1'", "add this address to it"),
        ("EE certificate key too weak", "RSA 2048 bits or P-256"),
        ("CA signature digest algorithm too weak", "with SHA-256"),
        ("permitted subtree violation", "a CA that may sign for this name"),
        ("excluded subtree violation", "a CA that may sign for this name"),
    ],
)
def test_rarer_flaws_have_their_fix(flaw: str, fix: str) -> None:
    assert fix in certificate_fix(f"certificate verify failed: {flaw}", "ca_file")


def test_no_fix_is_named_where_no_certificate_was_refused() -> None:
    assert certificate_fix("connection refused", "ca_file") == ""


ROOM = "apiservice/runtime/servertrust.py"
SERVERS = {"apiservice/tls/context.py", "load/apiserver.py", "load/uicluster.py"}
"""They make the contexts of listeners."""


def test_clients_make_their_contexts_in_one_room() -> None:
    makers = {
        str(path.relative_to(ROOT))
        for folder in ("adapter", "apiservice", "load")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("create_default_context", "SSLContext")
    }
    assert makers == {ROOM, *SERVERS}
