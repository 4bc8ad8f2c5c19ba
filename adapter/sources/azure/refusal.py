"""Convert the errors of Azure's library into source errors with a reason and a fix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adapter.sources.errors import SourceError, describe
from adapter.sources.login.tokens import redacted


def describe_query_error(error: Exception, library: Any) -> SourceError:
    """Return any failure of a query as a SourceError.

    Args:
        library: ``azure.core.exceptions``.
    """
    status = getattr(error, "status_code", None)
    if isinstance(error, json.JSONDecodeError | library.DecodeError) or status == 200:
        return SourceError(
            "not_json", f"the answer is not Log Analytics' JSON ({error}); check the endpoint"
        )
    if isinstance(error, library.HttpResponseError):
        return _refused(error)
    if isinstance(error, library.ServiceRequestError | library.ServiceResponseError):
        reason = "timeout" if "imeout" in type(error).__name__ else "connect"
        return SourceError(reason, redacted(error))
    if isinstance(error, library.AzureError):
        return SourceError("protocol", redacted(error))
    return describe(error)


def retry_after(error: Any) -> float:
    """Return the seconds of ``Retry-After``, limited to 0-600 because the header is untrusted."""
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    return min(float(text), 600.0) if text.isdigit() else 0.0


def _refused(error: Any) -> SourceError:
    status = error.status_code or 0
    text = f"HTTP status {status}: {_said(error)}"
    if status in (401, 403):
        return SourceError(
            "denied", f"{text}; give the identity the role Log Analytics Reader there"
        )
    if 300 <= status < 400:
        return SourceError("redirect", f"{text}: redirects are not followed; correct the endpoint")
    if status == 404:
        return SourceError("status", f"{text}; check workspace_id")
    return SourceError("unavailable" if status == 429 or status >= 500 else "query", text)


def _said(error: Any) -> str:
    """Return the innermost of the nested errors in a body (``error.innererror``)."""
    found = error.error
    while getattr(found, "innererror", None):
        inner = found.innererror
        if isinstance(inner, Mapping):
            while isinstance(inner.get("innererror"), Mapping):
                inner = inner["innererror"]
            return redacted(ValueError(f"{inner.get('code', '')}: {inner.get('message', '')}"))
        found = inner
    if found is not None and getattr(found, "message", None):
        return redacted(ValueError(f"{found.code}: {found.message}"))
    return redacted(error)
