"""Who may ask, and for what."""

from __future__ import annotations

from pathlib import Path

from adapter.settings.types import Seconds, Section


class AuthenticationSettings(Section):
    """Who a request is from. In a cluster nothing need be set."""

    configmap: bool = True
    """Read the CAs and header names from ``kube-system/extension-apiserver-authentication``
    and watch it. Without a cluster the files below are used."""
    requestheader_ca_file: Path | None = None
    """CA of the front proxy's client certificate; overrides the ConfigMap's."""
    requestheader_allowed_names: tuple[str, ...] = ()
    """Common names the front proxy may have; empty allows any that the CA signed."""
    client_ca_file: Path | None = None
    """CA of ordinary client certificates; overrides the ConfigMap's."""
    token_review: bool = True
    """Check bearer tokens by TokenReview (needs a cluster)."""
    token_audiences: tuple[str, ...] = ()
    """Audiences a token must be for; empty means the API server's own."""
    cache: Seconds = 10
    """Seconds a token's verdict is kept, good or bad."""


class AuthorizationSettings(Section):
    """What a request may do. ``system:masters`` always may."""

    subject_access_review: bool = True
    """Ask the API server (needs a cluster). False: only the lists below are allowed."""
    allow_users: tuple[str, ...] = ()
    """Users allowed everything without asking, for use without a cluster."""
    allow_groups: tuple[str, ...] = ()
    """Groups allowed everything without asking."""
    cache: Seconds = 10
    """Seconds a verdict is kept, allowed or denied."""
