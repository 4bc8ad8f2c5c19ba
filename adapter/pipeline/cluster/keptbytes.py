"""A bound on what is kept of one object: the API server limits an object to 1.5 MiB only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

MOST: Final = 32 << 10
"""Bytes of JSON that are kept of one object. A usual pod has less than 1 KiB: labels have no limit
of their own (``apimachinery/pkg/apis/meta/v1/validation/validation.go``), and a namespace's quota
counts objects, not their bytes."""


class OversizedError(ValueError):
    """So much of an object would be kept that it is left out."""


T = TypeVar("T")


def check(raw: msgspec.Raw | bytes, manifest: T, reduce: Callable[[T], Any]) -> None:
    """Check the size of what is kept of an object.

    Args:
        raw: the object's JSON. Most objects are smaller than the bound as a whole.
        manifest: the same, decoded.
        reduce: returns what is kept of it, in types that msgspec encodes.

    Raises:
        OversizedError: it is larger than :data:`MOST`.
    """
    if memoryview(raw).nbytes <= MOST:
        return
    size = len(msgspec.json.encode(reduce(manifest)))
    if size > MOST:
        raise OversizedError(
            f"{size} bytes of it would be kept, more than {MOST}: "
            "remove labels, annotations or other fields that nobody reads"
        )
