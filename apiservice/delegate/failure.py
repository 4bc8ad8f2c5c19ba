"""Why a delegate gave no usable answer."""

from __future__ import annotations

from typing import Final

OUTCOMES: Final = (
    *("ok", "not_found", "error", "refused", "timeout", "unreachable", "untrusted", "invalid"),
    *("too_large", "redirect", "overloaded", "no_token"),
)
"""Every outcome of a request, for metrics. ``error`` is an error that the delegate states itself,
``refused`` a token or a right that it does not accept, and ``untrusted`` a certificate that the
adapter does not accept."""


class DelegateFailure(Exception):  # noqa: N818 - no mistake of this server
    """The delegate gave no usable answer; the text says why."""

    def __init__(self, outcome: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome
