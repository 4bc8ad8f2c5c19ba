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
def unexpected(
    own: type[Exception], make: Callable[[str], Exception] | None = None
) -> Iterator[None]:
    """Raise an error of the caller's for any exception that the block raises.

    Args:
        own: the class of the caller's error; one of this class passes as it is.
        make: makes it from a text; ``own`` does by default.
    """
    try:
        yield
    except own:
        raise
    except Exception as raised:
        said = " ".join(str(raised).split())[:_LONGEST]
        text = f"this program fails on it ({type(raised).__name__}: {said}); please report it"
        raise (make or own)(text) from None
