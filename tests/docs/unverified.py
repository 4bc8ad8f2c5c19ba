"""What the documents show and no test runs, with how far it is checked: unverified.txt.

``python -m tests.docs.unverified`` writes the list; a test compares it, so that a command or
file that nobody runs comes into the documents only with a line there that a reader sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import Kind, kind
from tests.docs.commands import Command, commands
from tests.docs.pages import pages

FILE = Path(__file__).with_name("unverified.txt")
OURS = "charts/gpu-metrics-adapter"
CHART = ("install", "upgrade", "template")
OTHERS = frozenset(
    {
        "aws",
        "az",
        "curl",
        "docker",
        "gcloud",
        "grpcurl",
        "kind",
        "openssl",
        "pip",
        "pipx",
        "tar",
        "uv",
    }
)
"""Programs that are not run here."""
_ATTACHED = frozenset({"logs", "port-forward", "exec", "debug", "attach", "cp", "top", "wait"})


def rows() -> Iterator[str]:
    """One line for each thing, sorted within its page."""
    for page in pages():
        gaps = {f"{command}  [{why}]" for command in commands(page) if (why := gap(command))}
        for block in page.blocks:
            if block.language == "yaml" and kind(block) is Kind.FOREIGN:
                gaps.add(f"{block.comment}  [YAML]")
        if gaps:
            yield page.name
            yield from (f"    {' '.join(row.split())}" for row in sorted(gaps))


def gap(command: Command) -> str:
    """How far a command is checked that no test runs; empty for one that runs."""
    if command.program in OTHERS:
        return f"{command.program}'s flags"
    if command.program == "helm" and command.arguments[0] in CHART:
        return "" if OURS in command.arguments else "helm's own flags"
    if command.program == "helm":
        return "helm's own flags"
    if command.program == "kubectl" and _ATTACHED.intersection(command.arguments):
        return "kubectl's flags"
    return ""


def main() -> None:
    """Write the list."""
    FILE.write_text("".join(f"{row}\n" for row in rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
