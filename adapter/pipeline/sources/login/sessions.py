"""HTTP sessions of the clouds' libraries, which check certificates as this project's clients do."""

from __future__ import annotations

from typing import Any

from adapter.pipeline.sources.login.port import import_library
from apiservice.runtime.servertrust import checking_alike


def cloud_session(extra: str) -> Any:
    """Return a session of ``requests`` for a library that the extra installs.

    From urllib3 2.4 on, its contexts refuse on Python 3.13 what they accept on 3.12
    (urllib3/urllib3#5110: CAs of proxies that inspect TLS). The session trusts the CAs that
    ``requests`` trusts by itself.

    Raises:
        CredentialError: the extra is not installed.
    """
    requests = import_library("requests", extra)
    new_context = import_library("urllib3.util.ssl_", extra).create_urllib3_context

    class Adapter(requests.adapters.HTTPAdapter):  # type: ignore[name-defined,misc]  # of an extra
        """Opens connections with a context of its own, also through a proxy."""

        def init_poolmanager(self, *arguments: Any, **keywords: Any) -> None:
            context = checking_alike(new_context())
            super().init_poolmanager(*arguments, ssl_context=context, **keywords)

        def proxy_manager_for(self, *arguments: Any, **keywords: Any) -> Any:
            context = checking_alike(new_context())
            return super().proxy_manager_for(*arguments, ssl_context=context, **keywords)

    session = requests.Session()
    session.mount("https://", Adapter())
    return session
