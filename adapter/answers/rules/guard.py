"""The guard around what a rule makes the program do: any exception becomes the rule's own error.

Each parser has its errors. What else it raises is a mistake of this program, which must cost the
rule that found it, and nothing beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LONGEST: Final = 200
"""Characters of a text that an exception has."""


@contextmanager
def raise_unexpected_as(
    error_class: type[Exception], make: Callable[[str], Exception] | None = None
) -> Iterator[None]:
    """Raise an error of the caller's for any exception that the block raises.

    Args:
        error_class: of the caller's error; one of this class passes as it is.
        make: makes it from a text; ``error_class`` does by default.
    """
    try:
        yield
    except error_class:
        raise
    except Exception as raised:
        message = " ".join(str(raised).split())[:_LONGEST]
        text = f"this program fails on it ({type(raised).__name__}: {message}); please report it"
        raise (make or error_class)(text) from None
