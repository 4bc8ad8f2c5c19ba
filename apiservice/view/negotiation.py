"""Content negotiation of a view: JSON, a table, or the metadata alone.

After ``k8s.io/apiserver/pkg/endpoints/handlers/negotiation``: the clauses of ``Accept`` in the
order of their ``q``, and the first that this server can produce. kubectl asks for a ``Table`` and
lists JSON as its last choice.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from apiservice.errors import NotAcceptable

META: Final = "meta.k8s.io"
_JSON: Final = frozenset({"application/json", "application/*", "*/*"})
_RESHAPING: Final = ("as", "g", "v")
_KINDS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
_VERSIONS: Final = frozenset({"v1", "v1beta1"})
_CACHED: Final = 512
"""Bytes of a header that is cached; kubectl sends 110."""


class Form(NamedTuple):
    """The form of an answer."""

    kind: str = ""
    """``Table`` or one of the ``PartialObjectMetadata`` kinds; empty for the object itself."""
    version: str = ""
    """Of ``meta.k8s.io``."""

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of a table or of metadata."""
        return f"{META}/{self.version}"


OBJECT: Final = Form()


def negotiate(accept: bytes) -> Form:
    """Return the form that an Accept header prefers; an empty header means JSON.

    Raises:
        NotAcceptable: no clause can be satisfied.
    """
    form = _remembered(accept) if len(accept) <= _CACHED else _preferred(accept)
    if form is None:
        raise NotAcceptable
    return form


def _preferred(accept: bytes) -> Form | None:
    clauses = [clause for clause in accept.decode("latin-1").split(",") if clause.strip()]
    if not clauses:
        return OBJECT
    # Sorting is stable, so clauses of equal quality keep their order.
    ranked = sorted(map(_clause, clauses), key=lambda ranked: -ranked[0])
    return next((form for quality, form in ranked if quality > 0 and form is not None), None)


_remembered = lru_cache(maxsize=256)(_preferred)


def _clause(clause: str) -> tuple[float, Form | None]:
    """Return a clause's quality, and the form that it asks for if this server has it."""
    media_type, *rest = (part.strip() for part in clause.split(";"))
    parameters = {}
    for parameter in rest:
        name, _, value = parameter.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 1.0
    if media_type.lower() not in _JSON:
        return quality, None
    if not any(parameters.get(name) for name in _RESHAPING):
        return quality, OBJECT
    form = Form(parameters.get("as", ""), parameters.get("v", ""))
    known = form.kind in _KINDS and form.version in _VERSIONS and parameters.get("g") == META
    return quality, form if known else None
