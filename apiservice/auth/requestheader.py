"""The identity that a front proxy states in request headers, and which headers are read.

The rules are those of ``k8s.io/apiserver/pkg/authentication/request/headerrequest``. Header names
match in any case. The first user header with a value wins. Every group line is one group and is
never split at commas. Extra keys are lower-cased and percent-decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from apiservice.identity import User

Header = tuple[bytes, bytes]
"""An ASGI header: the name in lower case, the value without surrounding blanks."""

_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class HeaderNames:
    """Which headers state which part of an identity. An empty tuple reads no header.

    The defaults are those of ``k8s.io/apiserver/pkg/server/options/authentication.go``. There is
    no UID header unless the cluster names one: a kube-apiserver that does not know the header
    would pass on the one that its client sent.
    """

    users: tuple[str, ...] = ("x-remote-user",)
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def relevant(self, headers: Iterable[Header]) -> tuple[Header, ...]:
        """Return the headers that state an identity, in order: the key of a cache of users."""
        names, prefixes = self._exact, self._prefixes
        return tuple([h for h in headers if h[0] in names or h[0].startswith(prefixes)])

    def user(self, headers: Sequence[Header]) -> User | None:
        """Return the user that relevant headers state, or None if they state no name."""
        name = _first_value(headers, _lower_names(self.users))
        if not name:
            return None
        groups = [
            _text(value)
            for wanted in _lower_names(self.groups)
            for key, value in headers
            if key == wanted and value
        ]
        extra: dict[str, list[str]] = {}
        for prefix in self._prefixes:
            for key, value in headers:
                if key.startswith(prefix):
                    extra.setdefault(_extra_key(key[len(prefix) :]), []).append(_text(value))
        return User(
            name=name,
            uid=_first_value(headers, _lower_names(self.uids)),
            groups=tuple(groups),
            extra={key: tuple(values) for key, values in extra.items()},
        )

    @cached_property
    def _prefixes(self) -> tuple[bytes, ...]:
        return _lower_names(self.extra_prefixes)

    @cached_property
    def _exact(self) -> frozenset[bytes]:
        return frozenset(_lower_names((*self.users, *self.uids, *self.groups)))


def _lower_names(names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(name.strip().lower().encode() for name in names if name.strip())


def _first_value(headers: Sequence[Header], names: Sequence[bytes]) -> str:
    """Like ``Header.Get``: only the first line of the first name counts, and only with a value."""
    for wanted in names:
        value = next((value for key, value in headers if key == wanted), b"")
        if value:
            return _text(value)
    return ""


def _text(value: bytes) -> str:
    """Go keeps header bytes as they are. What is not UTF-8 becomes U+FFFD in JSON, there and
    here."""
    return value.decode("utf-8", "replace")


def _extra_key(raw: bytes) -> str:
    """A malformed escape keeps the key as it was sent, as ``unescapeExtraKey`` does."""
    text = _text(raw)
    return text if _MALFORMED.search(text) else unquote(text, errors="replace")
