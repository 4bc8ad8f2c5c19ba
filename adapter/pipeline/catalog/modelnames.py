"""Names of GPU models, which exporters, node labels and price lists write in different ways."""

from __future__ import annotations

import re


def words_of(name: str) -> list[str]:
    """Return the words of a name in upper case: ``NVIDIA-H100-80GB-HBM3`` has four."""
    return re.findall(r"[A-Z0-9]+", name.upper())


def is_of(model: str, name: str) -> bool:
    """Return whether a model's name contains the words of another name, in this order.

    Args:
        model: such as ``NVIDIA RTX PRO 6000 Blackwell Server Edition``.
        name: a word or more, such as ``RTX PRO 6000``; nothing is of an empty one.
    """
    words, some = words_of(model), words_of(name)
    return bool(some) and any(
        words[index : index + len(some)] == some for index in range(len(words) - len(some) + 1)
    )
