"""Build the delegates from the settings: their TLS, their token, and the loops that read them."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

from adapter import __version__
from adapter.config.settings import Settings
from adapter.config.settings.delegation import DelegateSettings, DelegationSettings
from apiservice.delegate.credential import Credential, RequestedToken, TokenFile, token_request
from apiservice.delegate.delegate import Delegate
from apiservice.delegate.delegation import Delegation
from apiservice.delegate.options import DelegateOptions
from apiservice.delegate.transport import HttpTransport
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.servertrust import client_context


class DelegateError(Exception):
    """A delegate cannot be used; the message names the key and the fix."""


def build_delegation(settings: Settings, client: Any, stack: AsyncExitStack) -> Delegation | None:
    """Return the delegates; None if there are none.

    Args:
        client: requests the tokens; None without a cluster.
        stack: closes the connections.

    Raises:
        DelegateError: see there.
    """
    chosen = settings.delegation
    if not chosen.delegates:
        return None
    for problem in delegation_problems(settings):
        raise DelegateError(problem)
    credential = _credential(chosen, client)
    agent = f"gpu-metrics-adapter/{__version__}"
    made = []
    for index, delegate in enumerate(chosen.delegates):
        options = delegate_options(delegate)
        tls = delegate_tls(delegate, f"delegation.delegates.{index}")
        transport = HttpTransport(options, tls, credential, agent)
        stack.push_async_callback(transport.close)
        made.append(Delegate(options, transport))
    return Delegation(made)


def delegate_options(settings: DelegateSettings) -> DelegateOptions:
    """Return the options of one delegate."""
    return DelegateOptions(
        name=settings.name,
        url=f"https://{settings.address or f'{settings.host}:{settings.service.port}'}",
        server_name=settings.server_name or settings.host,
        groups=settings.api_groups,
        names=settings.names,
        timeout=settings.timeout,
    )


def delegate_tls(settings: DelegateSettings, key: str) -> Callable[[], ssl.SSLContext]:
    """Return what supplies the TLS context of new connections.

    Raises:
        DelegateError: the CA cannot be used.
    """
    try:
        return _Tls(settings).current
    except OSError as error:  # SSLError is an OSError
        if settings.ca_file is not None:
            raise DelegateError(
                f"{key}.ca_file: {settings.ca_file}: {error}; give one or more PEM CAs"
            ) from error
        raise DelegateError(f"{key}.ca: {error}; give one or more PEM CAs") from error


class _Tls:
    """A TLS context, made again when the CA file changes."""

    def __init__(self, settings: DelegateSettings) -> None:
        self._settings = settings
        self._files = () if settings.ca_file is None else (settings.ca_file,)
        self._seen: Stamp = stamp(self._files)
        self._context = self._make()

    def current(self) -> ssl.SSLContext:
        """Return the context; raises OSError while the file cannot be used."""
        new_stamp = stamp(self._files)
        if new_stamp != self._seen:
            self._context = self._make()
            self._seen = new_stamp
        return self._context

    def _make(self) -> ssl.SSLContext:
        chosen = self._settings
        context = client_context(chosen.ca_file, chosen.ca or None)
        if chosen.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def delegation_problems(settings: Settings) -> Iterator[str]:
    """Yield why the settings of delegates cannot be used with the others.

    The chart sets some of these by the environment, so they are checked at the start.
    """
    chosen = settings.delegation
    if chosen.delegates and not chosen.token_file and not chosen.service_account:
        yield "delegation.service_account: set it or token_file, to identify to the delegates"
    for index, delegate in enumerate(chosen.delegates):
        if "external" in delegate.groups and not settings.external.enabled:
            yield (
                f"delegation.delegates.{index}.groups: external needs external.enabled: set it, or "
                "remove external from groups"
            )


def _credential(settings: DelegationSettings, client: Any) -> Credential:
    if settings.token_file is not None:
        return TokenFile(settings.token_file)
    if client is None:
        raise DelegateError(
            "delegation.service_account: its token comes from the cluster, and cluster.pods_file "
            "runs without one: set delegation.token_file"
        )
    namespace, _, name = settings.service_account.partition("/")
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"

    async def ask() -> bytes:
        from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

        return await call(client, "POST", path, token_request(), timeout_seconds=5, most=1 << 16)

    return RequestedToken(ask, settings.service_account)
