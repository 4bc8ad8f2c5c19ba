"""The server's TLS contexts, replaced as a whole while connections are open.

``ssl`` can add a certificate or a CA to a context in use but cannot remove a CA. So the listener
keeps one empty context, and its server-name callback gives every new handshake the current
context. A certificate or a CA bundle changes between two handshakes, and open connections are not
touched. A pair that cannot be served leaves the last good one in place, and ``problem`` reports it.

Sessions are not resumed: a resumed session would carry a client certificate past the check against
the current CAs, without its intermediates, and would prove no key. Tickets are off, but OpenSSL
keeps sessions of TLS 1.2 in a cache of the listener's context, which ``ssl`` cannot turn off. So a
context that has a session in its cache is not used for another connection, and the server also
ends a connection that resumed a session.
"""

from __future__ import annotations

import ssl

import structlog

from apiservice.auth.clientauth import ClientAuth
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.tls.certificates import (
    CertificateFiles,
    CertificatePairError,
    load_into,
    read_pair,
)
from apiservice.tls.selfsigned import SelfSigned

log = structlog.get_logger(__name__)

_RENEWAL_CHECK = 3600.0
"""Seconds between checks of the age of a self-signed certificate."""


class ServingTLS:
    """The certificate and the CAs that a listener serves TLS with.

    Raises:
        CertificatePairError: the pair cannot be served at the start.
    """

    def __init__(
        self, source: CertificateFiles | SelfSigned, trust: ClientAuth, now: float
    ) -> None:
        self._self_signed = source if isinstance(source, SelfSigned) else None
        self.files = source.files if isinstance(source, SelfSigned) else source
        """The files of the served pair."""
        self._trust = trust
        self.problem = ""
        """Why the current files are not served. Empty if they are served."""
        self._looked = now
        if self._self_signed is not None:
            self._self_signed.ensure(now)
        self._load(now)
        self._listening = self._new_listening()
        trust.subscribe(self._trust_changed)

    def listening_context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        if self._listening.session_stats()["number"]:
            self._listening = self._new_listening()
        return self._listening

    def check(self, now: float) -> None:
        """Serve the current files if they changed. Called every few seconds."""
        if self._self_signed is not None and abs(now - self._looked) >= _RENEWAL_CHECK:
            self._looked = now
            try:
                self._self_signed.ensure(now)
            except CertificatePairError as error:
                self._trouble(error)
        if not self.problem and self._served == self._stamp():
            return
        try:
            self._load(now)
        except CertificatePairError as error:
            self._trouble(error)
            return
        self.problem = ""
        log.info("serving certificate loaded", file=str(self.files.certificate))

    def _trouble(self, error: CertificatePairError) -> None:
        if str(error) != self.problem:
            log.warning(
                "serving certificate rejected; the last good one stays in use", error=str(error)
            )
        self.problem = str(error)

    def _load(self, now: float) -> None:
        # Before reading: a change while reading is noticed at the next check.
        file_stamp = self._stamp()
        validity = read_pair(self.files, now).validity
        self._current = self._build()
        self._served = file_stamp
        self.validity = validity
        """The dates of the served certificate."""

    def _stamp(self) -> Stamp:
        return stamp((self.files.certificate, self.files.key))

    def _build(self) -> ssl.SSLContext:
        context = server_context()
        load_into(context, self.files)
        self._accept(context)
        return context

    def _trust_changed(self) -> None:
        try:
            if self._served != self._stamp():
                raise CertificatePairError("the pair on disk has not been checked yet")
            self._current = self._build()
        except CertificatePairError:
            # The pair on disk cannot be served: add the CA to the context in use instead. A CA
            # that was removed stays in it, and the authenticator no longer trusts it.
            try:
                self._accept(self._current)
            except CertificatePairError as error:
                self._trouble(error)
        self._listening = self._new_listening()

    def _new_listening(self) -> ssl.SSLContext:
        """Return an empty context, from which a handshake copies whether to ask for a certificate.

        Where no CA is expected, no client is asked: every certificate would be refused.
        """
        context = server_context()
        context.sni_callback = self._choose
        context.verify_mode = ssl.CERT_OPTIONAL if self._trust.asks else ssl.CERT_NONE
        return context

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext
    ) -> None:
        """Runs at every ClientHello, with or without a server name."""
        connection.context = self._current

    def _accept(self, context: ssl.SSLContext) -> None:
        if self._trust.asks:
            context.verify_mode = ssl.CERT_OPTIONAL
        bundle = self._trust.bundle
        if not bundle:
            return
        try:
            context.load_verify_locations(cadata=bundle.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise CertificatePairError(
                f"the CAs of clients cannot be used: {error}; "
                "give CA certificates that OpenSSL accepts"
            ) from error


def server_context() -> ssl.SSLContext:
    """Return a context of a server, without a certificate. Sessions are not resumed by tickets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    return context
