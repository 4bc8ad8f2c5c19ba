"""Writes docs/reasons.md from the table of reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.pipeline.attribution.reasons import REASONS, AbsenceCause
from docs.paragraphs import wrapped

_INTRODUCTION = """
A pod without a value is left out of an answer. It never counts as 0. The reason is one of the words
below, with cause and fix. `gpu-metrics-adapter explain pod NAME`, `kubectl get
gpupods` (WHY-NOT), the message of a request for one pod, of an external metric or of KEDA, the log
of `serve`, and the label `reason` of `gma_absent_total` and `gma_gpu_pods_unmeasured` show it.

The tools print the commands with the real names. A command that changes an
object is for one that nothing manages ([where a fix
lasts](troubleshooting.md#where-a-fix-lasts)). The log of an exporter, its restart, and a pod's
state:
"""
_SHARED: Final = (
    "kubectl -n EXPORTER-NAMESPACE logs EXPORTER --tail=20",
    "kubectl -n EXPORTER-NAMESPACE delete pod EXPORTER",
    "kubectl -n NAMESPACE describe pod POD",
)
"""Commands of many reasons, which the page shows once."""


def page() -> str:
    """The page: one heading for each reason, with its cause, its fix and a command."""
    lines = ["# Why a pod has no value", "", "<!-- written by `make docs` from the code -->", ""]
    lines += wrapped(_INTRODUCTION)
    lines += ["```sh", *_SHARED, "```", ""]
    for name, reason in REASONS.items():
        lines += _section(name, reason)
    return "\n".join(lines).rstrip() + "\n"


def _section(name: str, reason: AbsenceCause) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield from wrapped(reason.cause)
    yield from wrapped(reason.fix)
    if reason.change is not None:
        yield from ("```sh", reason.change.make(reason.change.example).command, "```", "")
    commands = [text.format_map(_Capitals()) for text in (reason.command, reason.then) if text]
    if unshared := [command for command in commands if command not in _SHARED]:
        yield from ("```sh", *unshared, "```", "")


class _Capitals(dict[str, str]):
    """Placeholder -> the placeholder in capital letters."""

    def __missing__(self, key: str) -> str:
        return key.upper().replace("_", "-")
