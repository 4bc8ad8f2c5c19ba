"""Settings: authentication and authorization of requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from adapter.config.settings.types import ADVANCED, Seconds, Section
from apiservice.auth import authorization, tokens


class AuthenticationSettings(Section):
    """How the adapter identifies the user of a request. In a cluster the defaults work."""

    configmap: Annotated[bool, ADVANCED] = True
    """Watch the ConfigMap ``kube-system/extension-apiserver-authentication`` for the CAs and header
    names."""
    requestheader_ca_file: Annotated[Path | None, ADVANCED] = None
    """CA of the front proxy's client certificate. Overrides the CA in the ConfigMap."""
    requestheader_allowed_names: Annotated[tuple[str, ...], ADVANCED] = ()
    """Common names that the front proxy's certificate may have. If empty, any."""
    client_ca_file: Annotated[Path | None, ADVANCED] = None
    """CA of other client certificates. Overrides the CA in the ConfigMap."""
    token_review: Annotated[bool, ADVANCED] = True
    """Check bearer tokens with TokenReview. Needs a cluster."""
    token_audiences: Annotated[tuple[str, ...], ADVANCED] = ()
    """Audiences of tokens. If empty, the API server's own."""
    cache: Annotated[Seconds, ADVANCED] = tokens.TTL
    """Seconds that the result of a TokenReview is remembered."""


class AuthorizationSettings(Section):
    """What a user may do. The group ``system:masters`` may do everything."""

    subject_access_review: Annotated[bool, ADVANCED] = True
    """Ask with SubjectAccessReview. If false, only the users and groups below are allowed."""
    allow_users: Annotated[tuple[str, ...], ADVANCED] = ()
    """Users that are allowed everything without a review, for use without a cluster."""
    allow_groups: Annotated[tuple[str, ...], ADVANCED] = ()
    """Groups that are allowed everything without a review."""
    cache: Annotated[Seconds, ADVANCED] = authorization.TTL
    """Seconds that the result of a SubjectAccessReview is remembered."""
