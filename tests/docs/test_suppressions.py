"""The lint for suppressions finds those without a reason."""

from __future__ import annotations

import pytest

from docs import suppressions

PYTHON_BAD = (
    "import a  # noqa: F401",
    "import a  # noqa",
    "# ruff: noqa: N818",
    "a = b  # type: ignore[misc]",
    "a = b  # pragma: no cover",
    "pytest.skip()",
    "@pytest.mark.skip\ndef test(): ...",
    "@pytest.mark.xfail()\ndef test(): ...",
    "@pytest.mark.xfail(strict=True)\ndef test(): ...",
)
PYTHON_GOOD = (
    "import a  # noqa: F401 - registers the checks",
    "import a  # noqa: F401, PLC0415 (35 MB)",
    "a = b  # type: ignore[misc]  # the base has no types",
    "# --help needs none of it.\nimport a  # noqa: F401\nimport b  # noqa: F401",
    "a = '# noqa: F401'",
    "pytest.skip('no promtool')",
    "a = pytest.skip.Exception",
    "@pytest.mark.xfail(strict=True, reason='a bug of grpcio')\ndef test(): ...",
    "@pytest.mark.skipif(a, reason='no curl')\ndef test(): ...",
)


@pytest.mark.parametrize("text", PYTHON_BAD)
def test_a_suppression_without_a_reason_is_found(text: str) -> None:
    assert len(suppressions.unexplained("a.py", f"import pytest\n\n{text}\n")) == 1


@pytest.mark.parametrize("text", PYTHON_GOOD)
def test_a_suppression_with_a_reason_passes(text: str) -> None:
    assert suppressions.unexplained("a.py", f"import pytest\n\n{text}\n") == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('ignore = [\n  "D105",\n  "D107", # see the class\n]\n', [2]),
        ('"tests/**" = ["S"]\n', [1]),
        ('# Tests assert.\n"tests/**" = ["S"]\n', []),
        ("ignore_errors = true\n", [1]),
        ("ignore_errors = true # generated\n", []),
    ],
)
def test_an_exception_of_the_project_needs_a_comment(text: str, lines: list[int]) -> None:
    assert suppressions.unexplained("pyproject.toml", text) == lines
