"""The currently trusted CAs: the front proxy's CA and the CA of client certificates.

Both change while the server runs. What depends on them (the TLS context, the authenticator's
cached verdicts) compares the generation or subscribes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from apiservice.auth.requestheader import HeaderNames
from apiservice.auth.trust import ClientTrust


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Which certificates are a front proxy's, and which headers it may state."""

    ca: bytes
    """PEM."""
    allowed_names: tuple[str, ...] = ()
    """Common names; empty allows every certificate that the CA issued."""
    headers: HeaderNames = field(default_factory=HeaderNames)


class ClientAuth:
    """The current trust. Setting an equal value changes nothing, and keeps the generation."""

    def __init__(self, *, expected: bool = False) -> None:
        """Trust nobody yet.

        Args:
            expected: whether a CA becomes known later, as from a ConfigMap.
        """
        self._expected = expected
        self.generation = 0
        """Changes with every change of trust."""
        self.proxy: tuple[ProxySettings, ClientTrust] | None = None
        """The front proxy's settings and compiled CA; None until they are known."""
        self.clients: ClientTrust | None = None
        """The CA of client certificates, or None."""
        self._clients_pem = b""
        self._listeners: list[Callable[[], None]] = []

    @property
    def asks(self) -> bool:
        """Whether a handshake asks the client for a certificate.

        A CA that is still to come counts: who was not asked stays anonymous for as long as the
        connection lasts, and kube-apiserver keeps its connections. Until the CA is known, a
        certificate ends the handshake, and its client connects again.
        """
        return self._expected or self.proxy is not None or self.clients is not None

    @property
    def bundle(self) -> bytes:
        """Every CA that a handshake may accept, as PEM; empty if none is trusted.

        Serialized from the parsed certificates. OpenSSL parses PEM more strictly: a bundle that
        it rejects would be trusted here and fail every handshake there.
        """
        proxy = self.proxy[1].pem if self.proxy else b""
        clients = self.clients.pem if self.clients else b""
        return b"\n".join(pem for pem in dict.fromkeys((proxy, clients)) if pem)

    def set_proxy(self, settings: ProxySettings) -> bool:
        """Trust this front proxy from now on. Return True if that is a change.

        Raises:
            TrustError: the CA cannot be used; the earlier settings stay in use.
        """
        if self.proxy is not None and self.proxy[0] == settings:
            return False
        self.proxy = (settings, ClientTrust(settings.ca))
        self._announce_change()
        return True

    def set_clients(self, pem: bytes) -> bool:
        """Trust client certificates of this CA from now on. Return True if that is a change.

        Raises:
            TrustError: the CA cannot be used; the earlier one stays in use.
        """
        if self.clients is not None and self._clients_pem == pem:
            return False
        self.clients, self._clients_pem = ClientTrust(pem), pem
        self._announce_change()
        return True

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after every change."""
        self._listeners.append(listener)

    def _announce_change(self) -> None:
        self.generation += 1
        for listener in self._listeners:
            listener()
