"""Libraries of the clouds' own that are installed only where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adapter.sources.errors import CredentialError


def required(module: str, extra: str) -> Any:
    """An optional library.

    Raises:
        CredentialError: it is not installed; the text names the extra that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise CredentialError(
            f"needs the Python package {module.partition('.')[0]} ({error}): "
            f"pip install 'gpu-metrics-adapter[{extra}]'"
        ) from error
