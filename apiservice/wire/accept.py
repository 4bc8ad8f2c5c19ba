"""The Accept header: which of the forms that a client accepts is served.

After ``k8s.io/apiserver/pkg/endpoints/handlers/negotiation``: the clauses in the order of their
``q``. A clause may ask for another form of the answer with ``as``, ``v`` and ``g``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

_JSON: Final = frozenset({"application/json", "application/*", "*/*"})
_CACHED: Final = 512
"""Bytes of a header that is cached; aggregated discovery sends 200."""


class Form(NamedTuple):
    """The form of an answer that a clause asks for."""

    kind: str = ""
    """``as``; empty for the object itself."""
    version: str = ""
    """``v``."""
    group: str = ""
    """``g``."""

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of an answer in this form."""
        return f"{self.group}/{self.version}"


PLAIN: Final = Form()


def accept_header(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the Accept header of an ASGI scope; several lines are one list."""
    header = b""
    for name, value in headers:
        if name == b"accept":
            header = header + b"," + value if header else value
    return header


def accepts_json(accept: bytes) -> bool:
    """Return whether a clause matches JSON and asks for no other form; an empty header does."""
    if not accept:
        return True
    return _cached_plain(accept) if len(accept) <= _CACHED else _plain(accept)


def accepted_forms(accept: bytes) -> tuple[Form, ...]:
    """Return the forms in which a client accepts JSON, the preferred one first."""
    return _cached(accept) if len(accept) <= _CACHED else _forms(accept)


def _forms(accept: bytes) -> tuple[Form, ...]:
    clauses = [clause for clause in accept.decode("latin-1").split(",") if clause.strip()]
    if not clauses:
        return (PLAIN,)
    ranked = [pair for pair in map(_clause, clauses) if pair is not None and pair[0] > 0]
    # Sorting is stable, so clauses of equal quality keep their order.
    ranked.sort(key=lambda pair: -pair[0])
    return tuple(form for _, form in ranked)


def _plain(accept: bytes) -> bool:
    return PLAIN in _forms(accept)


_cached = lru_cache(maxsize=256)(_forms)
_cached_plain = lru_cache(maxsize=256)(_plain)


def _clause(clause: str) -> tuple[float, Form] | None:
    """Return a clause's quality and form, or None if it does not match JSON."""
    media_type, *rest = (part.strip() for part in clause.split(";"))
    if media_type.lower() not in _JSON:
        return None
    parameters: dict[str, str] = {}
    for parameter in rest:
        name, _, value = parameter.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 1.0
    return quality, Form(*(parameters.get(name, "") for name in ("as", "v", "g")))
