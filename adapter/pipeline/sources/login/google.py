"""Get Google access tokens with Google's library, from application default credentials.

In GKE these are the pod's workload identity, from the metadata server. Elsewhere they are
in the file that ``GOOGLE_APPLICATION_CREDENTIALS`` names.
"""

from __future__ import annotations

import datetime
import functools
from typing import Any, Final

from adapter.pipeline.sources.login.port import import_library
from adapter.pipeline.sources.login.sessions import cloud_session
from adapter.pipeline.sources.login.tokens import CachedToken, Token

READ: Final = "https://www.googleapis.com/auth/monitoring.read"
"""The scope of the query API of Managed Service for Prometheus."""
_TIMEOUT: Final = 10.0


def google_tokens() -> CachedToken:
    """Return tokens for the query API. The identity is determined with the first token.

    Raises:
        CredentialError: the extra ``google`` is not installed.
    """
    auth = import_library("google.auth", "google")
    transport = import_library("google.auth.transport.requests", "google")
    request = functools.partial(transport.Request(cloud_session("google")), timeout=_TIMEOUT)
    cached: list[Any] = []

    def fetch() -> Token:
        if not cached:
            credentials, _ = auth.default(scopes=[READ], request=request)
            cached.append(credentials)
        cached[0].refresh(request)
        expiry: datetime.datetime = cached[0].expiry
        return Token(cached[0].token, expiry.replace(tzinfo=datetime.UTC).timestamp())

    return CachedToken("Google application default credentials", fetch)
