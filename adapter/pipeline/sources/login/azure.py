"""Get Entra tokens with Azure's library: from workload identity, else from managed identity.

The webhook of Azure workload identity sets environment variables that name the identity. Without
them, the node's or the VM's managed identity is used (azure-identity,
``ManagedIdentityCredential``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.port import import_library
from adapter.pipeline.sources.login.sessions import cloud_session
from adapter.pipeline.sources.login.tokens import CachedToken, Token, redact_error

_FEDERATED: Final = "AZURE_FEDERATED_TOKEN_FILE"
_WAITS: Final[dict[str, Any]] = {"connection_timeout": 5, "read_timeout": 10}
_RETRIES: Final[dict[str, Any]] = {"retry_total": 2, "retry_status": 2}
"""Fewer retries than Azure's default, which takes over a minute and delays the process's exit."""


@dataclass(frozen=True, slots=True)
class AzureIdentity:
    """The identity to use."""

    client_id: str | None = None
    """ID of a user-assigned identity; None uses the pod's, or the system-assigned one."""
    tenant_id: str | None = None
    authority: str | None = None
    """Base URL of another cloud's Entra; None uses ``AZURE_AUTHORITY_HOST``, else public Azure."""


def azure_tokens(
    identity: AzureIdentity, audience: str, *, clock: Callable[[], float] = time.time
) -> CachedToken:
    """Return tokens for an audience, such as ``https://prometheus.monitor.azure.com``.

    Raises:
        CredentialError: the extra ``azure`` is not installed, or the identity is invalid.
    """
    library = import_library("azure.identity", "azure")
    try:
        _credential(library, identity).close()
    except ValueError as error:  # an invalid tenant, client or authority
        raise CredentialError(f"the identity cannot be used: {redact_error(error)}") from None
    scope = audience.rstrip("/") + "/.default"

    def fetch() -> Token:
        # The library caches tokens too and would return a rejected one again.
        with _credential(library, identity) as credential:
            token = credential.get_token(scope)
        return Token(token.token, float(token.expires_on))

    return CachedToken("Azure identity", fetch, clock=clock)


def _credential(library: Any, identity: AzureIdentity) -> Any:
    transport = import_library("azure.core.pipeline.transport", "azure").RequestsTransport(
        session=cloud_session("azure"), **_WAITS
    )
    if not os.environ.get(_FEDERATED):
        return library.ManagedIdentityCredential(
            client_id=identity.client_id, transport=transport, **_RETRIES
        )
    more: dict[str, Any] = {"authority": identity.authority} if identity.authority else {}
    return library.WorkloadIdentityCredential(
        client_id=identity.client_id,
        tenant_id=identity.tenant_id,
        # Else the library queries login.microsoftonline.com, which private clouds cannot reach.
        disable_instance_discovery=bool(identity.authority),
        transport=transport,
        **more,
        **_RETRIES,
    )
