"""The values that no two pods have in common, packed: uid, address and times.

As objects of their own they take 230 bytes a pod; packed, 80. Values of another form than the API
server's own, such as the uid of a pod in a test, stay as they are.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, TypeAlias

OwnValues: TypeAlias = bytes | tuple[str, str, tuple[float, float, float]]
"""The 16 bytes of a UUID, three doubles, and an IP address of 0, 4 or 16 bytes; or the values
themselves."""

_TIMES: Final = struct.Struct("<ddd")
_UID: Final = 16
_ADDRESS: Final = _UID + _TIMES.size


def pack_values(uid: str, address: str, moments: tuple[float, float, float]) -> OwnValues:
    """Pack a pod's own values. Equal values give equal results.

    Args:
        uid: its uid.
        address: its IP address; empty without one.
        moments: see :func:`times_of`.
    """
    number, place = _pack_uid(uid), _pack_address(address)
    if number is None or place is None:
        return (uid, address, moments)
    return number + _TIMES.pack(*moments) + place


def uid_of(values: OwnValues) -> str:
    """Return the uid."""
    return values[0] if isinstance(values, tuple) else _uuid(values[:_UID])


def address_of(values: OwnValues) -> str:
    """Return the IP address; empty without one."""
    return values[1] if isinstance(values, tuple) else _ip(values[_ADDRESS:])


def times_of(values: OwnValues) -> tuple[float, float, float]:
    """Return when the pod was created, and since when it is ready or not; 0 if not known."""
    return values[2] if isinstance(values, tuple) else _TIMES.unpack_from(values, _UID)


def _pack_uid(text: str) -> bytes | None:
    """Return the bytes of a UUID in its usual form; None for another text."""
    try:
        packed = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    return packed if len(packed) == _UID and _uuid(packed) == text else None


def _uuid(packed: bytes) -> str:
    digits = packed.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _pack_address(text: str) -> bytes | None:
    """Return the bytes of an IP address in its usual form; None for another text."""
    if not text:
        return b""
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return None
    return packed if _ip(packed) == text else None


def _ip(packed: bytes) -> str:
    if not packed:
        return ""
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
