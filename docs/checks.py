"""The page of the checks of ``doctor``: docs/checks.md, written from their docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.tools.doctor import runner  # noqa: F401 - registers the checks
from adapter.tools.doctor.model import CheckSection, DoctorCheck, registered_checks
from docs.paragraphs import wrapped

_OPTIONS: Final = (
    "- `--explain GMA012`: prints the text of one check; `--explain exporter_down` that of a",
    "  [reason](reasons.md)",
    "- `-v`: prints a line for each check",
    "- `-q`: prints only what was found",
    "- `-o json`, `-o yaml`: print every finding for programs",
    "- `--only GMA404`, `--only hpas`: run one check or one section",
    "- `-n NAMESPACE`: leaves out findings about objects of other namespaces",
    "- `--wait 5m`: looks every 5 seconds until there is no error and nothing unchecked, or the",
    "  time is over",
)


def page() -> str:
    """The page as Markdown."""
    checks = list(registered_checks())
    lines = [
        "# Checks of `doctor`",
        "",
        "<!-- written by `make docs` from adapter/tools/doctor/checks -->",
        "",
        *wrapped(
            """
            `gpu-metrics-adapter doctor` runs these checks on the cluster of your kubeconfig, before
            and after the installation. With `-f PATH` it checks manifests in files instead, for CI.
            It only reads. It prints each check that found something or could not check: `‼` is a
            warning, a cross an error. A finding ends with its fix and a command. The first line
            says which findings to fix first, if the order matters.
            """
        ),
        *_OPTIONS,
        "",
        *wrapped(
            """
            A check that needs a right that you do not have names the right and the command that
            grants it. The [exit code](commands.md#exit-codes) is 1 for errors, and otherwise 2 if a
            check could not be made, also if others are fine: `--only` runs those for which you
            have the rights. What only `helm test` can check, inside the cluster, does not count.
            """
        ),
    ]
    for section in CheckSection:
        in_section = [check for check in checks if check.section is section]
        if in_section:
            lines += [f"## {section[:1].upper()}{section[1:]}", ""]
            for check in in_section:
                lines += _check(check)
    return "\n".join(lines).rstrip() + "\n"


def _check(check: DoctorCheck) -> Iterator[str]:
    yield f"### {check.id}"
    yield ""
    yield f"**{check.title[:1].upper()}{check.title[1:]}** ({check.severity})"
    yield ""
    yield from wrapped(check.text)
