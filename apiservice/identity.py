"""Users and request attributes, and the interfaces of authentication and authorization.

The generic server calls :class:`Authenticator` and then :class:`Authorizer` for every request
before it looks anything up. So a request without the right cannot distinguish a metric that exists
from one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from apiservice.runtime.bytecache import weight

Scope = MutableMapping[str, Any]
"""An ASGI connection scope."""

ANONYMOUS = "system:anonymous"
AUTHENTICATED_GROUP = "system:authenticated"
UNAUTHENTICATED_GROUP = "system:unauthenticated"
PRIVILEGED_GROUP = "system:masters"

_NO_EXTRA: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated (or anonymous) user, like ``user.Info`` of ``k8s.io/apiserver``."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NO_EXTRA, hash=False)
    """Lower-case keys. Compared but not hashed, so that a user can be a cache key."""

    @property
    def bytes(self) -> int:
        """Bytes of its texts in memory."""
        return weight(self.name, self.uid, self.groups, self.extra)


class Attributes(NamedTuple):
    """What a request wants, as a SubjectAccessReview states it.

    Either ``path`` is set (a non-resource request) or the resource fields are.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    """Empty for cluster-scoped requests."""
    path: str = ""
    """The decoded URL path of a non-resource request, else empty."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The result of an authorizer; a denied user sees ``reason``."""

    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    """Identifies the sender of a request."""

    async def authenticate(self, scope: Scope) -> User:
        """Return the user behind an ASGI scope; anonymous if no credentials were sent.

        Raises:
            Unauthorized: credentials were sent and are not valid.
        """


class Authorizer(Protocol):
    """Decides whether a user may do what a request asks. An error is never an allow."""

    def known_decision(self, user: User, attributes: Attributes) -> AccessDecision | None:
        """Return the decision if it needs no waiting, else None."""

    async def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        """Return the decision, and request it if it is not cached.

        Raises:
            Internal: the cluster could not be asked.
        """
