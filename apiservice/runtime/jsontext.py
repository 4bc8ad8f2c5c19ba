"""What reading JSON from outside may raise: one list for every reader.

msgspec checks UTF-8 and nesting late: a name with a broken byte raises UnicodeDecodeError, and a
document that is nested some thousand times raises RecursionError, also where no field is kept.
"""

from __future__ import annotations

from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The text is not the JSON that the reader expects."""
