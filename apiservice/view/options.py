"""The options of a list, as ``metav1.ListOptions``: selectors, page size, position.

A continue token is opaque to clients. It holds the key of the last object that was sent, with the
resource and the namespace of the list, so it is refused for any other list. It grants nothing: the
next page is authorized and selected as the first was.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec

from apiservice.errors import BadQuery, BadRequest
from apiservice.labels.fields import FieldSelector, parse_fields
from apiservice.labels.requirement import integer
from apiservice.labels.selector import Selector, SelectorError
from apiservice.view.resource import Key, ViewResource
from apiservice.wire.routes import NAME_FIELD, check_list_options, label_selector, truth

NAMESPACE_FIELD: Final = "metadata.namespace"
Include = Literal["None", "Metadata", "Object"]
_INCLUDES: Final[dict[str, Include]] = {
    "": "Metadata",
    "None": "None",
    "Metadata": "Metadata",
    "Object": "Object",
}


class TableOptions(NamedTuple):
    """What each row of a table contains."""

    include: Include = "Metadata"
    """Of the object, beside the cells."""
    numbers: bool = False
    """Whether the numbers follow the texts that are written from them (parameter ``numbers``)."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list asks for."""

    labels: Selector
    fields: FieldSelector
    limit: int
    """Objects of one page; 0 sets no limit."""
    after: Key | None
    """The last object of the page before."""

    @property
    def selects(self) -> bool:
        """Whether a selector may leave out objects."""
        return not self.labels.empty or bool(self.fields.requirements)


class _Token(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The content of a continue token."""

    plural: str
    listed: str
    """The namespace of the list; empty for all."""
    namespace: str
    name: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Token).decode


def list_options(
    resource: ViewResource, namespace: str | None, query: Mapping[str, str]
) -> ListOptions:
    """Return the options of a list.

    Raises:
        BadRequest: a parameter does not parse, or a field cannot be selected.
    """
    check_list_options(query)
    return ListOptions(
        labels=label_selector(query, "labelSelector"),
        fields=_field_selector(resource, query),
        limit=max(0, integer(query.get("limit", "")) or 0),
        after=_after(resource, namespace, query.get("continue", "")),
    )


def table_options(query: Mapping[str, str]) -> TableOptions:
    """Return what each row of a table contains.

    Raises:
        BadRequest: ``includeObject`` has an unknown value.
    """
    text = query.get("includeObject", "")
    include = _INCLUDES.get(text)
    if include is None:
        message = f'unable to parse includeObject "{text}": it must be None, Metadata or Object'
        raise BadRequest(message)
    return TableOptions(include, truth(query, "numbers"))


def continue_token(resource: ViewResource, namespace: str | None, last: Key) -> str:
    """Return the token of the page after ``last``."""
    token = _Token(resource.plural, namespace or "", *last)
    return base64.urlsafe_b64encode(_encode(token)).rstrip(b"=").decode()


def _after(resource: ViewResource, namespace: str | None, text: str) -> Key | None:
    if not text:
        return None
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        token = _decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise BadRequest(
            "continue key is not valid: it does not come from this server; "
            "start the list again without it"
        ) from error
    if (token.plural, token.listed) != (resource.plural, namespace or ""):
        raise BadRequest(
            "continue key is not valid: it belongs to another list; start the list again without it"
        )
    return Key(token.namespace, token.name)


def _field_selector(resource: ViewResource, query: Mapping[str, str]) -> FieldSelector:
    try:
        selector = parse_fields(query.get("fieldSelector", ""))
    except SelectorError as error:
        message = f"unable to parse fieldSelector: {error}"
        raise BadRequest(message) from error
    supported = (NAME_FIELD, NAMESPACE_FIELD, *resource.fields)
    for requirement in selector.requirements:
        if requirement.field not in supported:
            raise BadQuery(
                f"field label not supported: {requirement.field}: "
                f"{resource.plural} can be selected by {', '.join(supported)}"
            )
    return selector
