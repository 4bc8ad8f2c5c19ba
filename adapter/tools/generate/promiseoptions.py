"""The options that state a latency promise: ``--ttft 1s --itl 50ms``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import click

from adapter.tools.client.options import join_options

if TYPE_CHECKING:  # importing it takes as long as all of --help
    from adapter.pipeline.catalog.promise import Promise

_BOUNDS: Final = (
    ("ttft", "their first token", "1s"),
    ("itl", "each next token", "50ms"),
    ("e2e", "their whole answer", "10s"),
)
"""Bounds of a promise: option, what it bounds, and an example."""
QUANTILE: Final = "p90"
"""The quantile that an option promises."""
promise_options: Final = join_options(
    *(
        click.option(
            f"--{key}",
            metavar="TIME",
            help=f"Promise that 90 % of the requests have {what} within this time, such as {such}.",
        )
        for key, what, such in _BOUNDS
    ),
)
"""Adds the options to a command."""


def take_promise(given: MutableMapping[str, Any]) -> tuple[Mapping[str, str], Promise]:
    """Take the options of a promise out of those of a command.

    Returns:
        The labels of the promise (``ttft_p90`` -> ``1s``) and its bounds; both are empty if the
        command line states none.

    Raises:
        click.UsageError: a promise cannot be meant.
    """
    stated = {f"{key}_{QUANTILE}": given.pop(key) for key, *_ in _BOUNDS}
    labels = {key: value for key, value in stated.items() if value is not None}
    if not labels:
        return {}, ()
    # Imported late: --help of the program needs none of it.
    from adapter.pipeline.catalog.promise import PromiseError, parse_promise  # noqa: PLC0415

    try:
        return labels, parse_promise(labels)
    except PromiseError as error:
        text = str(error)
        for key, *_ in _BOUNDS:
            text = text.replace(f"promise {key}_{QUANTILE}:", f"--{key}:")
        raise click.UsageError(text) from None
