"""Why a server answered without its page, and which setting makes it answer with it.

Go's server, which kube-rbac-proxy and most exporters use, answers plain HTTP on a TLS port with
status 400 and a sentence (golang/go ``net/http/server.go``); nginx does the same with another one.
Others send a TLS alert, or close the connection.
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlsplit

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.scrape.target import STATIC, ScrapeTarget

DENIED: Final = "denied"
SPEAKS_TLS: Final = "speaks_tls"
SPEAKS_HTTP: Final = "speaks_http"
NO_PAGE: Final = "no_page"
REFUSED: Final = frozenset((DENIED, SPEAKS_TLS, SPEAKS_HTTP, NO_PAGE, "redirect", "tls"))
"""Reasons of failures that another address, another CA or other credentials end: the server runs
and answers."""
READ: Final = 512
"""Bytes of an answer without the page that are read."""

_PLAIN_ON_TLS: Final = (b"HTTP request to an HTTPS server", b"plain HTTP request was sent to HTTPS")
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL says of an answer that is not TLS."""


def setting(target: ScrapeTarget) -> str:
    """Return where the address of a target and its access are set."""
    if target.rule == STATIC:
        return "its entry of source.scrape.targets"
    if target.serves:
        return "the pod's gpu-metrics-adapter.io annotations"
    return f"a rule of source.scrape.exporters (rule {target.rule} finds it)"


def refusal(
    target: ScrapeTarget, status: int, location: str, body: bytes, sent: str
) -> SourceError:
    """Return the error of an answer whose status is not 200.

    Args:
        target: the page.
        status: of the answer.
        location: the header of a redirect; empty without one.
        body: the beginning of the answer's body.
        sent: the Authorization header that was sent; empty without one.
    """
    text, where = f"HTTP status {status}", setting(target)
    if 300 <= status < 400:
        return SourceError("redirect", f"{text} {_redirect(target, location, where)}")
    if status == 400 and any(phrase in body for phrase in _PLAIN_ON_TLS):
        return SourceError(SPEAKS_TLS, f"{text}: {speaks_tls(target)}")
    if status in (401, 403):
        return SourceError(DENIED, f"{text}: {_explain_denial(target, status, sent, where)}")
    if status == 404:
        path = urlsplit(target.url).path or "/"
        return SourceError(NO_PAGE, f"{text}: it has no page at {path}; set path in {where}")
    return SourceError("status", text)


def speaks_tls(target: ScrapeTarget) -> str:
    """Return the explanation of a server that expects TLS."""
    return f"the server speaks TLS; {use_scheme(target, 'https')}"


def use_scheme(target: ScrapeTarget, scheme: str) -> str:
    """Return how to change the protocol of a target."""
    what = f"give a url with {scheme}" if target.rule == STATIC else f"set scheme: {scheme}"
    return f"{what} in {setting(target)}"


def tls_failure(target: ScrapeTarget, error: OSError) -> SourceError | None:
    """Return the error of a failed TLS handshake; None if the connection failed before it."""
    where = setting(target)
    if isinstance(error, ssl.SSLCertVerificationError):
        names = "server-name" if target.serves else "tls_config with ca_file and server_name"
        ca = ", and the CA in source.scrape.inference.tls_config" if target.serves else ""
        return SourceError(
            "tls",
            f"its certificate is not trusted: certificate verify failed: {error.verify_message}; "
            f"set {names} in {where}{ca}",
        )
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return SourceError(
            SPEAKS_HTTP, f"the server speaks plain HTTP, not TLS; {use_scheme(target, 'http')}"
        )
    return None


def _redirect(target: ScrapeTarget, location: str, where: str) -> str:
    """Return where a redirect leads. Redirects are not followed: they may lead anywhere."""
    shown = "".join(sign for sign in location[:200] if sign.isprintable() and sign != " ")
    if not shown:
        return f"redirects to another page, and redirects are not followed; set path in {where}"
    page, to = urlsplit(target.url), urlsplit(shown)
    text = f"redirects to {shown}, and redirects are not followed"
    if to.hostname not in (None, page.hostname):
        return f"{text}; correct the address in {where}"
    fixes = []
    if to.scheme not in ("", page.scheme):
        fixes.append(f"scheme: {to.scheme}")
    if to.port not in (None, page.port):
        fixes.append(f"port: {to.port}")
    if to.path and to.path != page.path:
        fixes.append(f"path: {to.path}")
    return f"{text}; set {', '.join(fixes) or 'path'} in {where}"


def _explain_denial(target: ScrapeTarget, status: int, sent: str, where: str) -> str:
    if target.serves:
        return (
            "the page needs credentials, and the adapter sends none to a server page; serve the "
            "metrics on a port without authentication, or read them from Prometheus"
        )
    if not sent and target.access.withheld:
        return (
            "the page needs credentials, and the pod's annotations choose its address; name the "
            f"pod's namespace in {where}, and set authorization or basic_auth there"
        )
    if not sent:
        return f"the page needs credentials; set authorization or basic_auth in {where}"
    if status == 401:
        return f"the server does not accept the credentials; correct them in {where}"
    path = urlsplit(target.url).path or "/"
    return (
        "the credentials may not read the page; allow their user to get the non-resource URL "
        f"{path}, or use others in {where}"
    )
