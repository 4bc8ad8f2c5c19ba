"""Build the OpenAPI schemas of the objects. ``kubectl explain`` prints the descriptions."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def text(description: str) -> Schema:
    """Return the schema of a string."""
    return {"type": "string", "description": description}


def time(description: str) -> Schema:
    """Return the schema of an RFC 3339 timestamp."""
    return {"type": "string", "format": "date-time", "description": description}


def integer(description: str) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "format": "int64", "description": description}


def number(description: str) -> Schema:
    """Return the schema of a number."""
    return {"type": "number", "format": "double", "description": description}


def boolean(description: str) -> Schema:
    """Return the schema of true or false."""
    return {"type": "boolean", "description": description}


def struct(description: str, **properties: Schema) -> Schema:
    """Return the schema of an object with these fields, each of which may be absent."""
    return {"type": "object", "description": description, "properties": properties}


def array(description: str, items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "description": description, "items": items}


def mapping(description: str, values: Schema) -> Schema:
    """Return the schema of an object with any keys."""
    return {"type": "object", "description": description, "additionalProperties": values}
