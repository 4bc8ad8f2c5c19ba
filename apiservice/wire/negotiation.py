"""Content negotiation: whether a client takes JSON, the one format there is.

After ``k8s.io/apiserver/pkg/endpoints/handlers/negotiation``: a clause that asks for
another shape of the answer (``as=Table;g=…;v=…``) is not for plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_JSON = frozenset({"application/json", "application/*", "*/*"})
_RESHAPING = frozenset({"as", "g", "v"})


def accept_header(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The Accept header of an ASGI scope; several lines are one list, none is empty."""
    found = b""
    for name, value in headers:
        if name == b"accept":
            found = found + b"," + value if found else value
    return found


def accepts_json(accept: bytes) -> bool:
    """Whether one clause matches JSON and asks for no other shape; no clause at all does.

    As every client is sent the same JSON, the order that ``q`` puts the clauses in makes
    no difference; only ``q=0`` takes a clause out (RFC 9110 section 12.4.2).
    """
    if not accept:
        return True
    return _cached(accept) if len(accept) <= _CACHED else _accepts(accept)


def _accepts(accept: bytes) -> bool:
    clauses = [clause for clause in accept.decode("latin-1").split(",") if clause.strip()]
    return not clauses or any(map(_takes_json, clauses))


_CACHED = 512
"""Bytes of a header that is remembered; aggregated discovery sends 200."""
_cached = lru_cache(maxsize=256)(_accepts)


def _takes_json(clause: str) -> bool:
    media_type, *parameters = (part.strip() for part in clause.split(";"))
    if media_type.lower() not in _JSON:
        return False
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        name = name.strip().lower()
        if name in _RESHAPING or (name == "q" and _is_zero(value)):
            return False
    return True


def _is_zero(quality: str) -> bool:
    try:
        return float(quality) == 0
    except ValueError:
        return False
