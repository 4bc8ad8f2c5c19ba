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


@dataclass(frozen=True, slots=True)
class _Compiled:
    pem: bytes
    trust: ClientTrust


class ClientAuth:
    """The current trust. Setting an equal value changes nothing, and keeps the generation."""

    def __init__(self) -> None:
        self._generation = 0
        self._proxy: tuple[ProxySettings, ClientTrust] | None = None
        self._clients: _Compiled | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def generation(self) -> int:
        """A number that changes with every change of trust."""
        return self._generation

    @property
    def proxy(self) -> tuple[ProxySettings, ClientTrust] | None:
        """The front proxy's settings and compiled CA; None until they are known."""
        return self._proxy

    @property
    def clients(self) -> ClientTrust | None:
        """The CA of client certificates, or None."""
        return self._clients.trust if self._clients else None

    @property
    def bundle(self) -> bytes:
        """Every CA that a handshake may accept, as PEM; empty if none is trusted.

        Serialized from the parsed certificates. OpenSSL parses PEM more strictly: a bundle that
        it rejects would be trusted here and fail every handshake there.
        """
        proxy = self._proxy[1].pem if self._proxy else b""
        clients = self._clients.trust.pem if self._clients else b""
        return b"\n".join(pem for pem in dict.fromkeys((proxy, clients)) if pem)

    def set_proxy(self, settings: ProxySettings) -> bool:
        """Trust this front proxy from now on. Return True if that is a change.

        Raises:
            TrustError: the CA cannot be used; the earlier settings stay in use.
        """
        if self._proxy is not None and self._proxy[0] == settings:
            return False
        self._proxy = (settings, ClientTrust(settings.ca))
        self._changed()
        return True

    def set_clients(self, pem: bytes) -> bool:
        """Trust client certificates of this CA from now on. Return True if that is a change.

        Raises:
            TrustError: the CA cannot be used; the earlier one stays in use.
        """
        if self._clients is not None and self._clients.pem == pem:
            return False
        self._clients = _Compiled(pem, ClientTrust(pem))
        self._changed()
        return True

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after every change."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        self._generation += 1
        for listener in self._listeners:
            listener()
