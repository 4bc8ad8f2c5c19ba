"""How a client checks a server's certificate: alike on every Python version, and as Go programs do.

From 3.13 on, Python's default contexts set ``VERIFY_X509_STRICT`` and
``VERIFY_X509_PARTIAL_CHAIN`` (docs.python.org, ``ssl.create_default_context``). The first refuses
certificates that depart from RFC 5280 in form: a CA without a key usage or a key identifier, a
certificate without the identifier of its issuer's key, a subject that is empty beside names that
are not critical. Clusters have such CAs for years: those of EKS (kubernetes-client/python#2394) and
of MicroK8s (canonical/microk8s#5537). kubectl, kube-apiserver and Prometheus accept them, because
Go does not check the form. The second trusts an intermediate CA without its root, as Go does.

So every client of this project clears the first flag and sets the second. What makes a certificate
trustworthy is still checked: each signature up to a trusted CA, that a CA is one, the dates, the
purpose, the constraints of names, and the host's name.
"""

from __future__ import annotations

import ssl
from os import PathLike
from typing import Final


def client_context(
    ca_file: str | PathLike[str] | None = None, ca_data: str | None = None
) -> ssl.SSLContext:
    """Return a context for connections to servers whose CA is in a file or a PEM text.

    Without either, the system's CAs are trusted.

    Raises:
        OSError: the file cannot be read; as SSLError, it or the text holds no certificate.
        ValueError: the text is not ASCII.
    """
    return checking_alike(ssl.create_default_context(cafile=ca_file, cadata=ca_data))


def checking_alike(context: ssl.SSLContext) -> ssl.SSLContext:
    """Set the flags of verification on a client's context that a library made; return it."""
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def certificate_fix(text: str, ca: str) -> str:
    """Return the fix for a certificate that was refused; empty if none was.

    Args:
        text: the error's, which contains OpenSSL's words for the flaw.
        ca: the setting that names the trusted CAs.
    """
    if "certificate verify failed" not in text:
        return ""
    return next(
        (fix for flaw, fix in _FLAWS.items() if flaw in text),
        f"set {ca} to the CA that signed the server's certificate",
    )


_STRONGER: Final = (
    "issue the server's certificates again, with keys of RSA 2048 bits or P-256 and with SHA-256"
)
_FLAWS: Final = {
    "has expired": "renew the server's certificate, and check this machine's clock",
    "not yet valid": "check this machine's clock, and the dates of the server's certificate",
    "ostname mismatch": "use a name that is in the server's certificate, or add this one to it",
    "IP address mismatch": (
        "use a name that is in the server's certificate, or add this address to it"
    ),
    "too weak": _STRONGER,
    "purpose": "issue the server's certificate for server authentication (extended key usage)",
    "invalid CA certificate": (
        "issue the server's certificate by a CA certificate (basic constraints CA:TRUE)"
    ),
    "permitted subtree": "issue the server's certificate by a CA that may sign for this name",
    "excluded subtree": "issue the server's certificate by a CA that may sign for this name",
}
"""The fix of each flaw: words of OpenSSL's ``X509_verify_cert_error_string``, and of Python's."""
