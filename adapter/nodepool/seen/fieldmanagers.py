"""Which field manager wrote which field of an object (``metadata.managedFields``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec


class ManagedFieldsEntry(msgspec.Struct, rename="camel"):
    """One of ``metadata.managedFields``."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] | None = None


def applied(rows: Iterable[ManagedFieldsEntry], manager: str, path: Sequence[str]) -> bool:
    """Return whether this manager owns a field. Another manager that changes the field takes it
    over."""
    return any(
        _has(row.fields_v1, path)
        for row in rows
        if (row.manager, row.operation, row.subresource) == (manager, "Apply", "")
    )


def _has(fields: Any, path: Sequence[str]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True
