"""Read the pods that the view API shows without a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

_LONGEST: Final = 600
"""Characters of a text that are kept."""


class WithoutValue(NamedTuple):
    """A pod without a value, as the adapter's view API shows it."""

    key: str
    """``namespace/name``."""
    reason: str
    message: str
    hint: str
    """The fix: a command, or words."""
    then: str = ""
    """A command for the case that the hint shows no cause."""
    changes: str = ""
    """``KIND/NAMESPACE/NAME`` of the object that the hint changes."""


class _Meta(msgspec.Struct):
    name: str
    namespace: str


class _Why(msgspec.Struct):
    reason: str = ""
    message: str = ""
    hint: str = ""
    then: str = ""
    changes: str = ""


class _GpuPod(msgspec.Struct):
    metadata: _Meta
    reason: _Why | None = None


def read_without_value(given: Mapping[str, Any]) -> WithoutValue:
    """Read a ``gpupod`` of the view API; raises ValidationError if it has no shape of one."""
    gpu_pod = msgspec.convert(given, _GpuPod)
    why = gpu_pod.reason or _Why()
    key = f"{gpu_pod.metadata.namespace}/{gpu_pod.metadata.name}"
    return WithoutValue(
        key, *map(_line, (why.reason, why.message, why.hint, why.then, why.changes))
    )


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
