"""Content negotiation of a view: objects, a table, or the metadata alone.

kubectl asks for a ``Table`` and accepts JSON as its last choice.
"""

from __future__ import annotations

from typing import Final

from apiservice.errors import NotAcceptable
from apiservice.wire.accept import PLAIN, Form, accepted_forms

META: Final = "meta.k8s.io"
TABLE: Final = "Table"
_KINDS: Final = (TABLE, "PartialObjectMetadata", "PartialObjectMetadataList")
_FORMS: Final = frozenset(
    {PLAIN} | {Form(kind, version, META) for kind in _KINDS for version in ("v1", "v1beta1")}
)


def negotiate(accept: bytes) -> Form:
    """Return the first form that a client accepts and this server has; empty means JSON.

    Raises:
        NotAcceptable: there is none.
    """
    for form in accepted_forms(accept):
        if form in _FORMS:
            return form
    raise NotAcceptable
